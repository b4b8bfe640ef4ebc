#include "models/safetensors.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "models/files.hpp"
#include "models/reference.hpp"

namespace troupe::models {
namespace {

Weights two_tensors() {
  Weights weights;
  weights["a"] = {.shape = {2, 3}, .data = {1, -2, 3, 0.5F, -0.0F, 1e-40F}, .dtype = Dtype::float32};
  weights["b"] = {.shape = {2}, .data = {1.5F, -8}, .dtype = Dtype::bfloat16};
  return weights;
}

Bytes file_of(std::string_view header, std::size_t data_bytes, std::uint64_t length) {
  Bytes out(8 + header.size() + data_bytes);
  std::memcpy(out.data(), &length, 8);
  std::memcpy(out.data() + 8, header.data(), header.size());
  return out;
}
Bytes file_of(std::string_view header, std::size_t data_bytes) { return file_of(header, data_bytes, header.size()); }

void expect_corrupt(const Bytes& file, std::string_view said) {
  const Result<Weights> weights = parse_safetensors(file, "m.safetensors");
  ASSERT_FALSE(weights) << said;
  EXPECT_EQ(weights.error().code, ErrorCode::corrupt);
  EXPECT_NE(weights.error().detail.find(said), std::string::npos) << weights.error().detail;
  EXPECT_NE(weights.error().detail.find("offset"), std::string::npos) << weights.error().detail;
}

TEST(Safetensors, ReadsBackWhatItWrites) {
  const Weights weights = two_tensors();
  const Result<Weights> again = parse_safetensors(safetensors_bytes(weights), "m");
  ASSERT_TRUE(again) << again.error().detail;
  for (const auto& [name, tensor] : weights) {
    EXPECT_EQ(again->at(name).shape, tensor.shape);
    EXPECT_EQ(again->at(name).dtype, tensor.dtype);
    EXPECT_EQ(std::memcmp(again->at(name).data.data(), tensor.data.data(), tensor.data.size() * 4), 0) << name;
  }
}

TEST(Safetensors, WritesTheseBytes) {
  Weights weights;
  weights["w"] = {.shape = {1, 2}, .data = {1, 2}, .dtype = Dtype::bfloat16};
  const Bytes file = safetensors_bytes(weights);
  const std::string text(reinterpret_cast<const char*>(file.data()), file.size());
  const std::string header = R"({"__metadata__":{"format":"pt"},"w":{"dtype":"BF16","shape":[1,2],"data_offsets":[0,4]}})";
  EXPECT_EQ(text, std::string("\x58\0\0\0\0\0\0\0", 8) + header + std::string((8 - header.size() % 8) % 8, ' ') + std::string("\x80\x3f\x00\x40", 4));
}

TEST(Safetensors, WidensHalfPrecision) {
  Bytes file = file_of(R"({"h":{"dtype":"F16","shape":[6],"data_offsets":[0,12]}})", 12);
  const std::uint16_t halves[6] = {0x3C00, 0xC000, 0x0001, 0x83FF, 0x7C00, 0x7BFF};
  std::memcpy(file.data() + file.size() - 12, halves, 12);
  const Weights weights = parse_safetensors(file, "m").value();
  EXPECT_EQ(weights.at("h").data, (std::vector<float>{1, -2, 0x1p-24F, -1023 * 0x1p-24F, INFINITY, 65504}));
  EXPECT_EQ(weights.at("h").dtype, Dtype::float32);
}

TEST(Safetensors, RoundsBfloat16HalfToEven) {
  EXPECT_EQ(to_bfloat16(1.0F + 0x1p-8F), 0x3F80);
  EXPECT_EQ(to_bfloat16(1.0F + 3 * 0x1p-8F), 0x3F82);
  EXPECT_EQ(to_bfloat16(1.0F + 0x1p-8F + 0x1p-20F), 0x3F81);
  EXPECT_EQ(to_bfloat16(-std::numeric_limits<float>::max()), 0xFF80);
  EXPECT_TRUE(std::isnan(from_bfloat16(to_bfloat16(NAN))));
}

TEST(Safetensors, RefusesEveryTruncation) {
  const Bytes file = safetensors_bytes(two_tensors());
  for (std::size_t length = 0; length < file.size(); ++length) {
    EXPECT_FALSE(parse_safetensors(BytesView(file).first(length), "m")) << length;
  }
}

TEST(Safetensors, RefusesBytesAfterTheEnd) {
  Bytes file = safetensors_bytes(two_tensors());
  file.push_back(std::byte{0});
  expect_corrupt(file, "end");
}

TEST(Safetensors, SurvivesEveryFlippedBit) {
  const Bytes file = safetensors_bytes(two_tensors());
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), 8);
  for (std::size_t bit = 0; bit < file.size() * 8; ++bit) {
    Bytes flipped = file;
    flipped[bit / 8] ^= std::byte{1} << (bit % 8);
    const Result<Weights> weights = parse_safetensors(flipped, "m");
    // A length that lies is always seen; the data have no checksum; in the header either can be.
    if (bit / 8 < 8 || bit / 8 >= 8 + length) {
      EXPECT_EQ(weights.has_value(), bit / 8 >= 8) << bit;
    }
  }
}

TEST(Safetensors, NamesTheOffsetOfALie) {
  const std::string a = R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  expect_corrupt(file_of("{" + a + "}", 4), "data_offsets within 4 bytes");
  expect_corrupt(file_of("{" + a + R"(,"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8), "b overlaps");
  expect_corrupt(file_of("{" + a + R"(,"b":{"dtype":"F32","shape":[1],"data_offsets":[12,16]}})", 16), "hole of 4 bytes before b");
  expect_corrupt(file_of(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8), "needs 12 bytes");
  expect_corrupt(file_of(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296,4],"data_offsets":[0,0]}})", 0), "more than 2^64");
  expect_corrupt(file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8), "data_offsets");
  expect_corrupt(file_of(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8), "shape");
  expect_corrupt(file_of(R"({"a":{"dtype":"F31","shape":[2],"data_offsets":[0,8]}})", 8), "F31");
  expect_corrupt(file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})", 8), "bad JSON");
  expect_corrupt(file_of(R"([1])", 0), "JSON object at offset 8");
  expect_corrupt(file_of("{}", 0, 3), "length");
  expect_corrupt(file_of("{}", 0, 1), "bad JSON");
  expect_corrupt(file_of("{}", 0, std::numeric_limits<std::uint64_t>::max()), "length");
  expect_corrupt(file_of("{}", 0, 100'000'001), "at most");
}

TEST(Safetensors, AcceptsAnEmptyFileOfTensorsAndEmptyTensors) {
  EXPECT_TRUE(parse_safetensors(file_of("{}", 0), "m")->empty());
  EXPECT_TRUE(parse_safetensors(file_of(R"({"a":{"dtype":"F32","shape":[0,4],"data_offsets":[0,0]}})", 0), "m")->at("a").data.empty());
}

TEST(Safetensors, RefusesOtherTypesByName) {
  const auto weights = parse_safetensors(file_of(R"({"mask":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}})", 8), "m");
  ASSERT_FALSE(weights);
  EXPECT_EQ(weights.error().code, ErrorCode::unsupported);
  EXPECT_NE(weights.error().detail.find("mask"), std::string::npos);
}

TEST(Safetensors, LeavesNoPartialFileWhenItCannotWrite) {
  EXPECT_EQ(save_safetensors("/no-such-folder/m.safetensors", two_tensors()).error().code, ErrorCode::io);
}

}  // namespace
}  // namespace troupe::models
