#include "cli/daemon/status_fields.h"

#include <nlohmann/json.hpp>

namespace clew::cli {

Json Part(const Json& json, const std::string& path) {
  const Json::json_pointer at("/" + path);
  return json.contains(at) ? json[at] : Json();
}

uint64_t Number(const Json& json, const std::string& path) {
  const Json part = Part(json, path);
  return part.is_number_unsigned() ? part.get<uint64_t>() : 0;
}

std::string Text(const Json& json, const std::string& path) {
  const Json part = Part(json, path);
  return part.is_string() ? part.get<std::string>() : "";
}

bool Flag(const Json& json, const std::string& path) {
  const Json part = Part(json, path);
  return part.is_boolean() && part.get<bool>();
}

}  // namespace clew::cli
