#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>

#include "cli/race_report.h"
#include "common/linux/syscall_table.h"
#include "common/text/one_line.h"
#include "common/text/path_names.h"

namespace clew::cli {
namespace {

using For = solver::WaitingThread::For;

constexpr size_t kWaitsMax = 16;  // printed

const char* KindName(AccessKind kind) {
  switch (kind) {
    case AccessKind::kRead:
      return "read";
    case AccessKind::kWrite:
      return "write";
    case AccessKind::kReadModifyWrite:
      break;
  }
  return "read-modify-write";
}

const char* VerbOf(AccessKind kind) {
  switch (kind) {
    case AccessKind::kRead:
      return "reads";
    case AccessKind::kWrite:
      return "writes";
    case AccessKind::kReadModifyWrite:
      break;
  }
  return "changes";
}

const char* NameOf(For what) {
  switch (what) {
    case For::kLock:
      return "lock";
    case For::kReadLock:
      return "read lock";
    case For::kCondition:
      return "condition variable";
    case For::kThread:
      return "end of thread";
    case For::kUnknown:
      break;
  }
  return "futex word";
}

std::string TextOf(uint64_t addr, const std::string& variable) {
  return variable.empty() ? fmt::format("{:#x}", addr)
                          : fmt::format("{:?}", variable);
}

// Where; as much as the images tell.
std::string TextOf(const NamedPlace& place) {
  if (!place.file.empty()) {
    return fmt::format("{:?} ({:?}:{})", place.function, place.file,
                       place.line);
  }
  if (place.module.empty()) {
    return "code of no image";
  }
  const std::string offset =
      fmt::format("{:?}+{:#x}", place.module, place.offset);
  return place.function.empty()
             ? offset
             : fmt::format("{:?} ({})", place.function, offset);
}

std::string TextOf(const NamedAccess& named) {
  const Access& access = named.access.access;
  if (named.access.call) {
    return fmt::format("{}, descriptor {}, result {}",
                       SyscallName(*named.access.call), access.addr,
                       static_cast<int64_t>(named.access.value));
  }
  return access.ip == TraceeAddr()
             ? fmt::format("has the kernel write at {}",
                           TextOf(access.addr.as_int(), named.variable))
             : fmt::format("{} {} at {}", VerbOf(access.kind),
                           named.access.value,
                           TextOf(access.addr.as_int(), named.variable));
}

std::string WhereOf(const NamedAccess& named) {
  if (named.place.module.empty() && named.access.access.ip == TraceeAddr()) {
    return "the kernel by itself";
  }
  return named.within.empty() ? TextOf(named.place)
                              : fmt::format("{:?} called by {}", named.within,
                                            TextOf(named.place));
}

Json ToJson(const NamedPlace& place) {
  return {{"function", place.function},
          {"file", place.file},
          {"line", place.line},
          {"module", place.module},
          {"offset", place.offset}};
}

Json ToJson(const NamedAccess& named) {
  const Access& access = named.access.access;
  Json json = {{"thread", access.thread.as_int()},
               {"kind", KindName(access.kind)}};
  json.update(ToJson(named.place));
  json["within"] = named.within;
  if (named.access.call) {
    json["call"] = SyscallName(*named.access.call);
    json["descriptor"] = access.addr.as_int();
    json["result"] = static_cast<int64_t>(named.access.value);
  } else {
    json["addr"] = access.addr.as_int();
    json["variable"] = named.variable;
    json["bytes"] = access.size_bytes;
    json["value"] = named.access.value;
  }
  return json;
}

Json ToJson(const NamedLock& lock) {
  Json json = {{"addr", lock.addr},
               {"variable", lock.variable},
               {"shared", lock.shared}};
  json.update(ToJson(lock.place));
  return json;
}

Json ToJson(const NamedWait& named) {
  Json held = Json::array();
  for (const NamedLock& lock : named.held) {
    held.push_back(ToJson(lock));
  }
  Json json = {{"thread", named.waiting.thread.as_int()},
               {"in_cycle", named.waiting.in_cycle},
               {"for", NameOf(named.waiting.what)},
               {"addr", named.waiting.addr},
               {"variable", named.variable}};
  if (named.waiting.what == For::kThread) {
    json["joins"] = named.waiting.joined.as_int();
  }
  json.update(ToJson(named.place));
  json["holds"] = std::move(held);
  return json;
}

// "(bank.c:12)", or where in which image.
std::string ShortText(const NamedPlace& place) {
  return place.file.empty()
             ? fmt::format("({})", TextOf(place))
             : fmt::format("({}:{})", Printable(BaseName(place.file)),
                           place.line);
}

std::string WaitText(const NamedWait& wait) {
  std::string text = fmt::format("thread {}", wait.waiting.thread);
  for (const NamedLock& lock : wait.held) {
    text +=
        fmt::format("{} {}{} {}", &lock == wait.held.data() ? " holds" : " and",
                    TextOf(lock.addr, lock.variable),
                    lock.shared ? " for reading" : "", ShortText(lock.place));
  }
  text += fmt::format("{} waits for {} ", wait.held.empty() ? "" : ",",
                      NameOf(wait.waiting.what));
  text += wait.waiting.what == For::kThread
              ? fmt::format("{}", wait.waiting.joined)
              : TextOf(wait.waiting.addr, wait.variable);
  return text + " " + ShortText(wait.place);
}

void PrintLine(const char* label, const std::string& text) {
  fmt::print("  {:<17}{}\n", label, text);
}

void PrintRace(const NamedRace& race) {
  const char* label = "race";
  for (const NamedAccess& access : race.accesses) {
    PrintLine(std::exchange(label, ""),
              fmt::format("thread {} {}, {}", access.access.access.thread,
                          TextOf(access), WhereOf(access)));
  }
  if (race.under_locks) {
    PrintLine("", "each under one lock, which was given back in between");
  }
}

void PrintWaits(const char* label, std::span<const NamedWait> waits) {
  for (const NamedWait& wait : waits.first(std::min(waits.size(), kWaitsMax))) {
    PrintLine(std::exchange(label, ""), WaitText(wait));
  }
  if (waits.size() > kWaitsMax) {
    PrintLine("", fmt::format("and {} more", waits.size() - kWaitsMax));
  }
}

}  // namespace

void AddTo(Json& json, const Findings& findings) {
  Json races = Json::array();
  for (const NamedRace& race : findings.races) {
    Json accesses = Json::array();
    for (const NamedAccess& access : race.accesses) {
      accesses.push_back(ToJson(access));
    }
    races.push_back({{"internal", race.internal},
                     {"under_locks", race.under_locks},
                     {"accesses", std::move(accesses)}});
  }
  Json waits = Json::array();
  for (const NamedWait& wait : findings.waits) {
    waits.push_back(ToJson(wait));
  }
  json["races"] = std::move(races);
  json["waits"] = std::move(waits);
}

void PrintFindings(const Findings& findings) {
  const std::span all(findings.waits);
  if (HasCycle(findings)) {
    const auto cycle = std::ranges::count_if(
        all, [](const auto& wait) { return wait.waiting.in_cycle; });
    PrintWaits("deadlock", all.first(static_cast<size_t>(cycle)));
    return;
  }
  PrintWaits("waiting", all);
  if (!findings.races.empty() && !findings.races.front().internal) {
    PrintRace(findings.races.front());
  }
}

}  // namespace clew::cli
