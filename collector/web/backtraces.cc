#include "collector/web/backtraces.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "collector/catalogue/catalogue.h"

namespace clew::collector::web {
namespace {

using nlohmann::json;

const json* Find(const json& object, const char* name) {
  if (!object.is_object()) {
    return nullptr;
  }
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

std::string StringOf(const json& object, const char* name) {
  const json* value = Find(object, name);
  return value != nullptr && value->is_string() ? value->get<std::string>()
                                                : std::string();
}

uint64_t NumberOf(const json& object, const char* name) {
  const json* value = Find(object, name);
  return value != nullptr && value->is_number_unsigned()
             ? value->get<uint64_t>()
             : 0;
}

// A number, or its text ("0x11c6").
std::string OffsetOf(const json& object) {
  const json* value = Find(object, "offset");
  return value != nullptr && value->is_number_unsigned()
             ? fmt::format("{:#x}", value->get<uint64_t>())
             : StringOf(object, "offset");
}

Frame FrameOf(const json& object) {
  return {.function = StringOf(object, "function"),
          .module = StringOf(object, "module"),
          .build_id = StringOf(object, "build_id"),
          .offset = OffsetOf(object),
          .file = StringOf(object, "file"),
          .line = NumberOf(object, "line")};
}

bool FlagOf(const json& object, const char* name) {
  const json* value = Find(object, name);
  return value != nullptr && value->is_boolean() && value->get<bool>();
}

bool IsFailed(const json& thread) { return FlagOf(thread, "failed"); }

std::vector<std::string> NotesOf(const json& document) {
  std::vector<std::string> notes;
  const json* values = Find(document, "notes");
  if (values == nullptr || !values->is_array()) {
    return notes;
  }
  for (const json& value : *values) {
    if (value.is_string() && notes.size() < kNotesMax) {
      notes.push_back(value.get<std::string>());
    }
  }
  return notes;
}

ThreadTrace ThreadOf(const json& object) {
  ThreadTrace trace;
  const json* number = Find(object, "thread");
  if (number != nullptr && number->is_number_integer()) {
    trace.thread = number->get<int64_t>();
  }
  trace.failed = IsFailed(object);
  trace.cut_off = FlagOf(object, "cut_off");
  const json* frames = Find(object, "frames");
  if (frames == nullptr || !frames->is_array()) {
    return trace;
  }
  const size_t shown = std::min(frames->size(), kFramesMax);
  for (size_t i = 0; i < shown; ++i) {
    trace.frames.push_back(FrameOf((*frames)[i]));
  }
  trace.frames_left_out = frames->size() - shown;
  return trace;
}

// A discarded value: no JSON, or too long. What is nested too deep is left out.
json ParseJson(std::string_view text) {
  if (text.size() > kBacktracesBytesMax) {
    return json(json::value_t::discarded);
  }
  return json::parse(
      text.begin(), text.end(),
      [](int depth, json::parse_event_t, json&) {
        return depth <= static_cast<int>(kBacktracesDepthMax);
      },
      /*allow_exceptions=*/false);
}

int64_t SignedOf(const json& object, const char* name) {
  const json* value = Find(object, name);
  return value != nullptr && value->is_number_integer() ? value->get<int64_t>()
                                                        : 0;
}

// The list of that name in what a witness shows; nullptr: it has none. A list
// alone is that of the races.
const json* ListIn(const json& document, const char* name) {
  const json* list = document.is_array() && std::string_view(name) == "races"
                         ? &document
                         : Find(document, name);
  return list != nullptr && list->is_array() ? list : nullptr;
}

std::string NameOf(const json& object) {
  const std::string variable = StringOf(object, "variable");
  return variable.empty() ? fmt::format("{:#x}", NumberOf(object, "addr"))
                          : variable;
}

WaitSeen WaitOf(const json& object) {
  WaitSeen wait = {.thread = SignedOf(object, "thread"),
                   .in_cycle = FlagOf(object, "in_cycle"),
                   .what = StringOf(object, "for"),
                   .name = Find(object, "joins") == nullptr
                               ? NameOf(object)
                               : std::to_string(SignedOf(object, "joins")),
                   .place = FrameOf(object),
                   .holds = {}};
  if (const json* holds = ListIn(object, "holds")) {
    for (const json& lock : *holds) {
      if (wait.holds.size() < kHoldsMax) {
        wait.holds.push_back({.name = NameOf(lock),
                              .shared = FlagOf(lock, "shared"),
                              .place = FrameOf(lock)});
      }
    }
  }
  return wait;
}

AccessSeen AccessOf(const json& object) {
  return {.thread = SignedOf(object, "thread"),
          .kind = StringOf(object, "kind"),
          .place = FrameOf(object),
          .within = StringOf(object, "within"),
          .variable = StringOf(object, "variable"),
          .addr = NumberOf(object, "addr"),
          .value = NumberOf(object, "value"),
          .call = StringOf(object, "call"),
          .descriptor = NumberOf(object, "descriptor"),
          .result = SignedOf(object, "result")};
}

}  // namespace

std::vector<AccessesSeen> ParseRaces(std::string_view json_untrusted) {
  const json document = ParseJson(json_untrusted);
  std::vector<AccessesSeen> races;
  const json* list = ListIn(document, "races");
  if (list == nullptr) {
    return races;
  }
  for (const json& race : *list) {
    const json* accesses = ListIn(race, "accesses");
    if (accesses == nullptr || FlagOf(race, "internal") ||
        races.size() == kRacesMax) {
      continue;
    }
    AccessesSeen& seen = races.emplace_back();
    for (const json& access : *accesses) {
      if (seen.size() < kAccessesMax) {
        seen.push_back(AccessOf(access));
      }
    }
  }
  return races;
}

std::vector<WaitSeen> ParseWaits(std::string_view json_untrusted) {
  const json document = ParseJson(json_untrusted);
  std::vector<WaitSeen> waits;
  if (const json* list = ListIn(document, "waits")) {
    for (const json& wait : *list) {
      if (waits.size() < kWaitsMax) {
        waits.push_back(WaitOf(wait));
      }
    }
  }
  return waits;
}

Backtraces ParseBacktraces(std::string_view json_untrusted) {
  const json document = ParseJson(json_untrusted);
  const json* threads = Find(document, "threads");
  Backtraces result;
  if (threads == nullptr || !threads->is_array()) {
    result.understood = false;
    return result;
  }
  for (const bool wanted : {true, false}) {
    for (const json& thread : *threads) {
      if (IsFailed(thread) == wanted && result.threads.size() < kThreadsMax) {
        result.threads.push_back(ThreadOf(thread));
      }
    }
  }
  result.notes = NotesOf(document);
  result.threads_left_out = threads->size() - result.threads.size();
  return result;
}

}  // namespace clew::collector::web
