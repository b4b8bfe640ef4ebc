#include <fmt/format.h>

#include <boost/json.hpp>
#include <fstream>
#include <set>
#include <sstream>
#include <toml++/toml.h>

#include "scheduler/inventory.hpp"

namespace troupe::scheduler {
namespace {

namespace json = boost::json;

constexpr std::uint64_t kCountMax = 65536;

// Both formats are read through one tree; TOML becomes JSON first.
json::value to_json(const toml::node& node) {
  if (const auto* table = node.as_table()) {
    json::object object;
    for (const auto& [key, value] : *table) object.emplace(key.str(), to_json(value));
    return object;
  }
  if (const auto* list = node.as_array()) {
    json::array array;
    for (const auto& value : *list) array.push_back(to_json(value));
    return array;
  }
  if (const auto* text = node.as_string()) return json::string(text->get());
  if (const auto* number = node.as_integer()) return number->get();
  if (const auto* number = node.as_floating_point()) return number->get();
  if (const auto* flag = node.as_boolean()) return flag->get();
  return json::string("a date");
}

/// Reads the keys of one table and refuses those that nobody asked for. The first problem is kept.
class Table {
 public:
  Table(const json::object& object, std::string path, std::optional<Error>& problem) : object_(object), path_(std::move(path)), problem_(problem) {}

  std::uint64_t count(const char* key, std::optional<std::uint64_t> otherwise) {
    const json::value* value = find(key, otherwise.has_value());
    if (value == nullptr) return otherwise.value_or(0);
    if (value->is_int64() && value->as_int64() >= 0 && static_cast<std::uint64_t>(value->as_int64()) <= kCountMax) return static_cast<std::uint64_t>(value->as_int64());
    refuse(key, fmt::format("a whole number from 0 to {}", kCountMax), *value);
    return 0;
  }
  std::uint64_t bytes(const char* key, bool is_optional) {
    const json::value* value = find(key, is_optional);
    if (value == nullptr) return 0;
    if (value->is_int64() && value->as_int64() >= 0) return static_cast<std::uint64_t>(value->as_int64());
    if (value->is_string()) {
      if (const auto size = parse_bytes(std::string_view(value->as_string()))) return *size;
    }
    refuse(key, "bytes or a size such as \"64GiB\"", *value);
    return 0;
  }
  std::string text(const char* key, bool is_optional) {
    const json::value* value = find(key, is_optional);
    if (value == nullptr) return "";
    if (value->is_string() && !value->as_string().empty()) return std::string(value->as_string());
    refuse(key, "a text", *value);
    return "";
  }
  std::vector<Table> tables(const char* key, bool is_optional) {
    std::vector<Table> all;
    const json::value* value = find(key, is_optional);
    if (value == nullptr) return all;
    if (!value->is_array()) refuse(key, "a list of tables", *value);
    else {
      for (const json::value& each : value->as_array()) {
        if (each.is_object()) all.emplace_back(each.as_object(), fmt::format("{}{}[{}].", path_, key, all.size()), problem_);
        else refuse(key, "a list of tables", each);
      }
    }
    return all;
  }
  void refuse_other_keys() {
    for (const auto& entry : object_) {
      if (known_.contains(std::string(entry.key()))) continue;
      std::string allowed;
      for (const std::string& key : known_) allowed += (allowed.empty() ? "" : ", ") + key;
      set(fmt::format("{}{}: an unknown key; allowed are {}", path_, std::string_view(entry.key()), allowed));
    }
  }
  void set(std::string detail) {
    if (!problem_) problem_ = Error{ErrorCode::bad_input, std::move(detail)};
  }

 private:
  const json::value* find(const char* key, bool is_optional) {
    known_.insert(key);
    const json::value* value = object_.if_contains(key);
    if (value == nullptr && !is_optional) set(fmt::format("{}{}: want this key, got none", path_, key));
    return value;
  }
  void refuse(const char* key, std::string_view wanted, const json::value& got) {
    set(fmt::format("{}{}: want {}, got {}", path_, key, wanted, json::serialize(got)));
  }

  const json::object& object_;
  std::string path_;
  std::optional<Error>& problem_;
  std::set<std::string> known_;
};

void read_gpus(Table& host, const std::string& host_name, std::vector<Gpu>& gpus) {
  for (Table& table : host.tables("gpu", true)) {
    const std::uint64_t count = table.count("count", 1);
    const std::string uuid = table.text("uuid", true);
    const std::string name = table.text("name", true);
    const std::uint64_t memory_bytes = table.bytes("memory", true);
    table.refuse_other_keys();
    if (count != 1 && !uuid.empty()) table.set("gpu.uuid: want it of one GPU, got a count beside it");
    for (std::uint64_t i = 0; i < count; ++i) {
      gpus.push_back({uuid.empty() ? fmt::format("GPU-{}-{}", host_name, gpus.size()) : uuid, name, memory_bytes});
    }
  }
}

void read_host(Table& table, Inventory& inventory) {
  const std::uint64_t count = table.count("count", 1);
  const std::string name = table.text("name", false);
  Host host;
  host.cores = static_cast<std::uint32_t>(table.count("cores", std::nullopt));
  host.memory_bytes = table.bytes("memory", false);
  const std::uint64_t ranks = table.count("ranks", 1);
  for (std::uint64_t i = 0; i < count; ++i) {
    host.name = count == 1 ? name : fmt::format("{}{}", name, i + 1);
    host.gpus.clear();
    read_gpus(table, host.name, host.gpus);
    for (const Host& other : inventory.hosts) {
      if (other.name == host.name) table.set(fmt::format("host.name: want each once, got {} twice", host.name));
    }
    RankPlace place{static_cast<std::uint32_t>(inventory.hosts.size()), {}};
    for (std::uint32_t gpu = 0; gpu < host.gpus.size(); ++gpu) place.gpus.push_back(gpu);
    inventory.hosts.push_back(host);
    for (std::uint64_t rank = 0; rank < ranks; ++rank) inventory.ranks.push_back(place);
  }
  table.refuse_other_keys();
}

Result<Inventory> read_tree(const json::value& tree, const std::string& file) {
  std::optional<Error> problem;
  Inventory inventory;
  if (!tree.is_object()) return Error{ErrorCode::bad_input, fmt::format("{}: want a table with host entries, got {}", file, json::serialize(tree))};
  Table root(tree.as_object(), "", problem);
  for (Table& host : root.tables("host", false)) read_host(host, inventory);
  root.refuse_other_keys();
  if (inventory.ranks.empty()) root.set("host: want at least one host with a rank, got none");
  if (problem) return Error{problem->code, file + ": " + problem->detail};
  return inventory;
}

}  // namespace

Result<Inventory> parse_inventory_toml(std::string_view text, const std::string& file) {
  try {
    return read_tree(to_json(toml::parse(text)), file);
  } catch (const toml::parse_error& error) {
    return Error{ErrorCode::bad_input, fmt::format("{}:{}: {}", file, error.source().begin.line, error.description())};
  }
}

Result<Inventory> parse_inventory_json(std::string_view text, const std::string& file) {
  json::error_code problem;
  const json::value tree = json::parse(json::string_view(text.data(), text.size()), problem);
  if (problem) return Error{ErrorCode::bad_input, fmt::format("{}: not JSON: {}", file, problem.message())};
  return read_tree(tree, file);
}

Result<Inventory> read_inventory(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  if (!in || !(text << in.rdbuf())) return Error{ErrorCode::io, fmt::format("{}: want an inventory file, got one that cannot be read", path)};
  return path.ends_with(".json") ? parse_inventory_json(text.str(), path) : parse_inventory_toml(text.str(), path);
}

}  // namespace troupe::scheduler
