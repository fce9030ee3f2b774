#include "daemon/control/protocol.h"

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

namespace clew::daemon {
namespace {

using Json = nlohmann::ordered_json;

struct CodeName {
  ErrorCode code;
  const char* name;
};
constexpr std::array kCodes = {
    CodeName{ErrorCode::kInvalidArgument, "invalid"},
    CodeName{ErrorCode::kCorruptInput, "corrupt"},
    CodeName{ErrorCode::kUnsupported, "unsupported"},
    CodeName{ErrorCode::kSystem, "system"},
    CodeName{ErrorCode::kLimit, "limit"},
};

std::string Line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

// Reads the fields of one object; after the last, Finish refuses others.
class Fields {
 public:
  explicit Fields(const Json& json) : json_(json) {}

  template <class Number>
  Status Integer(const char* key, Number least, Number most, Number* value) {
    const Json* field = Ask(key);
    if (field == nullptr) {
      return {};
    }
    if (!field->is_number_integer()) {
      return InvalidArgument("{} is no whole number", key);
    }
    // Negative ones are signed, all others unsigned here.
    const bool negative =
        !field->is_number_unsigned() && field->get<int64_t>() < 0;
    const bool in_range =
        negative ? static_cast<int64_t>(least) < 0 &&
                       field->get<int64_t>() >= static_cast<int64_t>(least)
                 : field->get<uint64_t>() <= static_cast<uint64_t>(most) &&
                       (static_cast<int64_t>(least) <= 0 ||
                        field->get<uint64_t>() >= static_cast<uint64_t>(least));
    if (!in_range) {
      return InvalidArgument("{} is {}, wanted {} to {}", key, field->dump(),
                             least, most);
    }
    *value = field->get<Number>();
    return {};
  }
  Status Flag(const char* key, bool* value) {
    const Json* field = Ask(key);
    if (field == nullptr) {
      return {};
    }
    if (!field->is_boolean()) {
      return InvalidArgument("{} is neither true nor false", key);
    }
    *value = field->get<bool>();
    return {};
  }
  Status Text(const char* key, std::string* value) {
    const Json* field = Ask(key);
    if (field == nullptr) {
      return {};
    }
    if (!field->is_string()) {
      return InvalidArgument("{} is no text", key);
    }
    const auto& text = field->get_ref<const std::string&>();
    if (text.size() > kTextBytesMax) {
      return InvalidArgument("{} has {} bytes, at most {} are taken", key,
                             text.size(), kTextBytesMax);
    }
    for (const char c : text) {
      if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') {
        return InvalidArgument("{} has a control character", key);
      }
    }
    *value = text;
    return {};
  }
  Status Finish() const {
    if (asked_ < json_.size()) {
      return InvalidArgument("the request has fields that {:?} does not know",
                             json_.value("do", ""));
    }
    return {};
  }

 private:
  const Json* Ask(const char* key) {
    const auto at = json_.find(key);
    if (at == json_.end()) {
      return nullptr;
    }
    ++asked_;
    return &*at;
  }
  const Json& json_;
  size_t asked_ = 1;  // "do"
};

constexpr int32_t kIdMax = INT32_MAX;

Result<Request> ReadSnapshot(Fields& fields) {
  SnapshotRequest request;
  CLEW_RETURN_IF_ERROR(fields.Integer("pid", 0, kIdMax, &request.process));
  CLEW_RETURN_IF_ERROR(fields.Text("unit", &request.unit));
  CLEW_RETURN_IF_ERROR(fields.Flag("end", &request.end));
  CLEW_RETURN_IF_ERROR(fields.Text("reason", &request.reason));
  if ((request.process != 0) == !request.unit.empty()) {
    return InvalidArgument("a snapshot needs pid or unit, and not both");
  }
  return request;
}

Result<Request> ReadRetry(Fields& fields) {
  RetryRequest request;
  CLEW_RETURN_IF_ERROR(fields.Text("bundle", &request.bundle));
  return request;
}

Result<Request> ReadCore(Fields& fields) {
  CoreRequest request;
  CLEW_RETURN_IF_ERROR(fields.Integer("pid", 1, kIdMax, &request.process));
  CLEW_RETURN_IF_ERROR(fields.Integer("tid", 1, kIdMax, &request.thread));
  CLEW_RETURN_IF_ERROR(fields.Integer("signal", 1, 64, &request.signal));
  CLEW_RETURN_IF_ERROR(
      fields.Integer("time_s", int64_t{0}, INT64_MAX, &request.time_s));
  CLEW_RETURN_IF_ERROR(fields.Text("comm", &request.comm));
  if (request.process == 0 || request.thread == 0 || request.signal == 0) {
    return InvalidArgument("a core dump needs pid, tid and signal");
  }
  return request;
}

Result<Request> ReadCoreDone(Fields& fields) {
  CoreDoneRequest request;
  CLEW_RETURN_IF_ERROR(
      fields.Integer("bytes", uint64_t{0}, UINT64_MAX, &request.bytes));
  CLEW_RETURN_IF_ERROR(fields.Flag("whole", &request.whole));
  return request;
}

Result<Request> ReadRequest(const std::string& what, Fields& fields) {
  if (what == "status") {
    return StatusRequest();
  }
  if (what == "units") {
    return UnitsRequest();
  }
  if (what == "reload") {
    return ReloadRequest();
  }
  if (what == "snapshot") {
    return ReadSnapshot(fields);
  }
  if (what == "retry") {
    return ReadRetry(fields);
  }
  if (what == "core") {
    return ReadCore(fields);
  }
  if (what == "core-done") {
    return ReadCoreDone(fields);
  }
  return InvalidArgument("unknown request {:?}", what.substr(0, 64));
}

struct Formatter {
  Json operator()(const StatusRequest&) const { return {{"do", "status"}}; }
  Json operator()(const UnitsRequest&) const { return {{"do", "units"}}; }
  Json operator()(const ReloadRequest&) const { return {{"do", "reload"}}; }
  Json operator()(const SnapshotRequest& request) const {
    return {{"do", "snapshot"},
            {"pid", request.process},
            {"unit", request.unit},
            {"end", request.end},
            {"reason", request.reason}};
  }
  Json operator()(const RetryRequest& request) const {
    return {{"do", "retry"}, {"bundle", request.bundle}};
  }
  Json operator()(const CoreRequest& request) const {
    return {{"do", "core"},
            {"pid", request.process},
            {"tid", request.thread},
            {"signal", request.signal},
            {"time_s", request.time_s},
            {"comm", request.comm}};
  }
  Json operator()(const CoreDoneRequest& request) const {
    return {{"do", "core-done"},
            {"bytes", request.bytes},
            {"whole", request.whole}};
  }
};

}  // namespace

Result<Request> ParseRequest(std::string_view line) {
  if (line.size() >= kRequestBytesMax) {
    return InvalidArgument("a request of {} bytes, at most {} are read",
                           line.size(), kRequestBytesMax);
  }
  // Depth is bounded by the length; the parser has no recursion.
  const Json json = Json::parse(line, nullptr, false);
  if (json.is_discarded() || !json.is_object() || !json.contains("do") ||
      !json["do"].is_string()) {
    return InvalidArgument(
        "a request is one JSON object with the field \"do\"");
  }
  Fields fields(json);
  CLEW_ASSIGN_OR_RETURN(request,
                        ReadRequest(json["do"].get<std::string>(), fields));
  CLEW_RETURN_IF_ERROR(fields.Finish());
  return request;
}

std::string FormatRequest(const Request& request) {
  return Line(std::visit(Formatter(), request));
}

std::string OkReply() { return Line({{"ok", true}}); }

std::string OkReply(std::string_view field, uint64_t value) {
  return Line({{"ok", true}, {field, value}});
}

std::string OkReply(std::string_view field, const std::string& value) {
  return Line({{"ok", true}, {field, value}});
}

std::string ErrorReply(const Error& error) {
  const char* name = "";
  for (const CodeName& code : kCodes) {
    name = code.code == error.code ? code.name : name;
  }
  return Line({{"ok", false}, {"code", name}, {"error", error.message}});
}

Result<std::string> ParseReply(std::string line) {
  const Json json = Json::parse(line, nullptr, false);
  if (json.is_discarded() || !json.is_object() || !json.contains("ok") ||
      !json["ok"].is_boolean()) {
    return CorruptInput("clewd's answer is no reply: {:?}",
                        line.substr(0, 200));
  }
  if (json["ok"].get<bool>()) {
    return line;
  }
  Error error{ErrorCode::kSystem, "clewd gave no reason"};
  if (json.contains("error") && json["error"].is_string()) {
    error.message = json["error"].get<std::string>();
  }
  for (const CodeName& code : kCodes) {
    if (json.contains("code") && json["code"] == code.name) {
      error.code = code.code;
    }
  }
  return std::unexpected(error);
}

}  // namespace clew::daemon
