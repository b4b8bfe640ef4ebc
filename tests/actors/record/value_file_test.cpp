#include "actors/record/value_file.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "actors/base/fields.hpp"
#include "actors/record/scratch.hpp"

namespace troupe::record {
namespace {

struct Tensor {
  std::vector<float> values;
  std::vector<std::uint64_t> shape;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    auto view = shaped(values, shape);
    archive& boost::serialization::make_nvp("values", view);
  }
};

struct State {
  bool ready = false;
  std::uint64_t step = 0;
  double rate = 0;
  std::string name, empty, binary;
  std::vector<std::int32_t> ids, none;
  std::vector<Tensor> tensors;
  std::vector<std::string> words;
  std::vector<bool> flags;
  std::optional<int> missing, present;
  std::map<std::string, std::vector<double>> moments;
  std::tuple<int, std::string> pair;
  TROUPE_FIELDS(ready, step, rate, name, empty, binary, ids, none, tensors, words, flags, missing, present, moments, pair)
};

State sample() {
  return {.ready = true,
          .step = 12,
          .rate = 0.25,
          .name = "läufer",
          .empty = "",
          .binary = std::string("a\0b\0", 4),
          .ids = {1, -2, 3},
          .none = {},
          .tensors = {{.values = {1, 2, 3, 4, 5, 6}, .shape = {2, 3}}, {.values = {7}, .shape = {1}}, {.values = {}, .shape = {0, 4}}},
          .words = {"one", "", "three"},
          .flags = {true, false},
          .missing = std::nullopt,
          .present = 5,
          .moments = {{"a/b.weight", {1, 2}}, {"c", {}}},
          .pair = {3, "x"}};
}

void expect_round_trip(const Value& value) {
  Scratch scratch;
  const auto path = scratch.path() / "v.h5";
  const Result<void> wrote = write_value_file(path, value);
  ASSERT_TRUE(wrote) << wrote.error().detail;
  const Result<Value> back = read_value_file(path);
  ASSERT_TRUE(back) << back.error().detail;
  const auto difference = first_difference(value, *back);
  EXPECT_FALSE(difference) << difference->path << ": " << difference->left << " / " << difference->right;
}

TEST(ValueFile, ReadsBackEveryKindOfValue) { expect_round_trip(to_value(sample())); }

TEST(ValueFile, ReadsBackARootThatIsNoRecord) {
  expect_round_trip(to_value(std::string("text")));
  expect_round_trip(to_value(std::vector<float>{1, 2}));
  expect_round_trip(to_value(std::vector<std::string>{}));
  expect_round_trip(Value{});
}

TEST(ValueFile, KeepsTheOrderOfManyFieldsAndOddNames) {
  Value record;
  record.kind = Value::Kind::record;
  for (int i = 0; i < 150; ++i) {
    record.names.push_back(std::to_string((i * 37) % 150) + (i % 2 == 0 ? "/a%b" : ""));
    record.children.push_back(to_value(i));
  }
  for (const char* name : {".", "", "%2F", "%"}) {
    record.names.emplace_back(name);
    record.children.push_back(to_value(std::string(name)));
  }
  expect_round_trip(record);
}

TEST(ValueFile, WritesEqualBytesForEqualTrees) {
  Scratch scratch;
  ASSERT_TRUE(save_value_file(scratch.path() / "a.h5", sample()));
  ASSERT_TRUE(save_value_file(scratch.path() / "b.h5", sample()));
  EXPECT_EQ(read_text(scratch.path() / "a.h5"), read_text(scratch.path() / "b.h5"));
}

TEST(ValueFile, CompressesLongArrays) {
  Scratch scratch;
  std::vector<std::uint64_t> counting(50'000);
  for (std::size_t i = 0; i < counting.size(); ++i) counting[i] = i;
  ASSERT_TRUE(save_value_file(scratch.path() / "c.h5", counting, {.compress = true, .links = {}}));
  EXPECT_LT(std::filesystem::file_size(scratch.path() / "c.h5"), 200'000U);
  const auto back = load_value_file<std::vector<std::uint64_t>>(scratch.path() / "c.h5");
  ASSERT_TRUE(back) << back.error().detail;
  EXPECT_EQ(*back, counting);
}

TEST(ValueFile, RefusesAShapeThatDoesNotFitNamingTheObject) {
  Scratch scratch;
  State bad = sample();
  bad.tensors = {{.values = {1, 2}, .shape = {3}}};
  const Result<void> wrote = save_value_file(scratch.path() / "bad.h5", bad);
  ASSERT_FALSE(wrote);
  EXPECT_EQ(wrote.error().code, ErrorCode::bad_input);
  EXPECT_NE(wrote.error().detail.find("/tensors/0/values"), std::string::npos) << wrote.error().detail;
  EXPECT_TRUE(std::filesystem::is_empty(scratch.path()));
}

TEST(ValueFile, NamesTheFieldThatAReaderMisses) {
  Scratch scratch;
  ASSERT_TRUE(save_value_file(scratch.path() / "t.h5", Tensor{.values = {1}, .shape = {1}}));
  const auto read = load_value_file<State>(scratch.path() / "t.h5");
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().detail.find("t.h5"), std::string::npos) << read.error().detail;
  EXPECT_NE(read.error().detail.find("ready"), std::string::npos) << read.error().detail;
}

TEST(ValueFile, FindsEveryFlippedByte) {
  Scratch scratch;
  const auto path = scratch.path() / "f.h5";
  ASSERT_TRUE(save_value_file(path, Tensor{.values = {1, 2}, .shape = {2}}));
  const std::string good = read_text(path);
  for (std::size_t i = 0; i < good.size(); ++i) {
    write_text(path, flipped(good, i));
    EXPECT_FALSE(verify_value_file(path)) << "byte " << i;
  }
}

TEST(ValueFile, FindsEveryLengthThatItIsCutTo) {
  Scratch scratch;
  const auto path = scratch.path() / "f.h5";
  ASSERT_TRUE(save_value_file(path, 5));
  const std::string good = read_text(path);
  for (std::size_t length = 0; length < good.size(); ++length) {
    write_text(path, good.substr(0, length));
    EXPECT_FALSE(read_value_file(path)) << "cut to " << length;
  }
}

TEST(ValueFile, ReportsAFullDiskAndLeavesNothing) {
  EXPECT_FALSE(save_value_file("/dev/full/x.h5", sample()));
  Scratch scratch;
  ASSERT_TRUE(save_value_file(scratch.path() / "x.h5", 1));
  const Result<void> wrote =
      with_files_of_at_most(1000, [&] { return save_value_file(scratch.path() / "x.h5", std::vector<double>(4000)); });
  ASSERT_FALSE(wrote);
  EXPECT_EQ(wrote.error().code, ErrorCode::io);
  EXPECT_EQ(*load_value_file<int>(scratch.path() / "x.h5"), 1);
  EXPECT_FALSE(std::filesystem::exists(scratch.path() / "x.h5.partial"));
}

TEST(ValueFile, OpensInH5py) {
  if (!has_h5py()) GTEST_SKIP() << "/usr/bin/python3 has no h5py (package python3-h5py)";
  Scratch scratch;
  ASSERT_TRUE(save_value_file(scratch.path() / "v.h5", sample()));
  EXPECT_EQ(python(scratch.path(), R"(
import h5py
f = h5py.File('v.h5', 'r')
assert list(f) and f['step'][()] == 12 and f['ready'][()] == True and f['rate'][()] == 0.25
assert f['name'][()].decode() == 'läufer' and f['ids'][:].tolist() == [1, -2, 3]
assert f['tensors/0/values'].shape == (2, 3) and f['tensors/0/values'].dtype == 'float32'
assert [w.decode() for w in f['words'][:]] == ['one', '', 'three'] and f['flags'].dtype == bool
)"),
            0);
}

}  // namespace
}  // namespace troupe::record
