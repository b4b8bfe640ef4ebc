#pragma once

// What the reference implementation computed for a folder: cases.json and expected.safetensors.

#include <boost/json.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "models/reference.hpp"
#include "models/safetensors.hpp"

namespace troupe::models::testing {

struct Case {
  std::string name;
  std::vector<TokenId> tokens, top1, greedy;
  std::vector<double> token_logprobs;
  std::vector<double> logits;  ///< [tokens, vocabulary] float64
};

struct Cases {
  double logits_abs = 0, logprob_abs = 0;
  std::vector<Case> all;
};

template <class T>
std::vector<T> list_of(const boost::json::value& array) {
  std::vector<T> out;
  for (const boost::json::value& element : array.as_array()) out.push_back(element.to_number<T>());
  return out;
}

inline std::vector<double> doubles_of(std::string_view file, const std::string& name) {
  const BytesView bytes = std::as_bytes(std::span(file));
  const SafetensorsEntry entry = parse_safetensors_header(bytes, bytes.size(), "expected").value().at(name);
  std::vector<double> out((entry.end - entry.begin) / sizeof(double));
  std::memcpy(out.data(), file.data() + entry.begin, out.size() * sizeof(double));
  return out;
}

inline Cases load_cases(const std::string& folder) {
  const boost::json::value root = boost::json::parse(text_of(data_folder() / folder / "cases.json"));
  const std::string expected = text_of(data_folder() / folder / "expected.safetensors");
  Cases cases;
  cases.logits_abs = root.at("tolerance").at("logits_abs").to_number<double>();
  cases.logprob_abs = root.at("tolerance").at("logprob_abs").to_number<double>();
  for (const boost::json::value& value : root.at("cases").as_array()) {
    const std::string name(value.at("name").as_string());
    cases.all.push_back({name, list_of<TokenId>(value.at("tokens")), list_of<TokenId>(value.at("top1")), list_of<TokenId>(value.at("greedy")),
                         list_of<double>(value.at("token_logprobs")), doubles_of(expected, name + ".logits_f64")});
  }
  return cases;
}

}  // namespace troupe::models::testing
