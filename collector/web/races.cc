#include "collector/web/races.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "collector/web/backtraces.h"
#include "collector/web/format.h"
#include "collector/web/tables.h"
#include "collector/web/threads.h"
#include "common/units.h"

namespace clew::collector::web {
namespace {

constexpr Column kOrder{"#", "index"};
constexpr Column kThread{"Thread", "number"};
constexpr Column kWhat{"Access", "status"};
constexpr Column kWhere{"Function", "function"};
constexpr Column kAccessSource{"Source", "place"};

constexpr Column kHolds{"Holds", "function"};
constexpr Column kWaitsFor{"Waits for", "function"};

std::string VariableOf(const AccessSeen& access) {
  if (!access.call.empty()) {
    return fmt::format("descriptor {}", access.descriptor);
  }
  return access.variable.empty() ? fmt::format("{:#x}", access.addr)
                                 : access.variable;
}

// The value as a number, and in hexadecimal digits where that says more.
std::string ValueOf(const AccessSeen& access) {
  if (!access.call.empty()) {
    return fmt::format("{}", access.result);
  }
  constexpr uint64_t kPlainMax = 1'000'000;
  return access.value <= kPlainMax ? fmt::format("{}", access.value)
                                   : fmt::format("{:#x}", access.value);
}

// As much as the image tells.
std::string SourceOf(const Frame& place) {
  std::string source = PlaceOf(place);
  if (!source.empty()) {
    return source;
  }
  return place.module.empty()
             ? "no image"
             : fmt::format("{} +{}", place.module, place.offset);
}

void WriteAccess(HtmlWriter& html, size_t number, const AccessSeen& access) {
  html.In("tr", {{"role", "row"}}, [&] {
    WriteCell(html, kOrder, [&] { html.Text(std::to_string(number)); });
    WriteCell(html, kThread, [&] { html.Text(std::to_string(access.thread)); });
    WriteCell(html, kWhat, [&] {
      html.In("strong", {}, [&] {
        html.Foreign(access.call.empty() ? access.kind : access.call);
      });
      html.Text(" ");
      html.Foreign(VariableOf(access));
      html.Text(" ");
      html.Element("code", "= " + ValueOf(access));
    });
    WriteCell(html, kWhere, [&] {
      html.Foreign(access.place.function.empty() ? "not known"
                                                 : access.place.function);
    });
    WriteCell(html, kAccessSource, [&] {
      html.Foreign(SourceOf(access.place));
      if (!access.within.empty()) {
        html.Text(" by ");
        html.Foreign(access.within);
      }
    });
  });
}

// For people: what the three accesses mean.
std::string MeaningOf(const AccessesSeen& race) {
  const auto reads = [](const AccessSeen& a) { return a.kind == "read"; };
  if (race.size() != 3 || race[0].thread != race[2].thread) {
    return "Two threads access it, and nothing puts one before the other.";
  }
  if (reads(race[0]) && !reads(race[2])) {
    return fmt::format(
        "Thread {} writes what it made of an old value: what thread {} wrote "
        "in between is lost.",
        race[2].thread, race[1].thread);
  }
  return reads(race[1])
             ? fmt::format(
                   "Thread {} reads a value that thread {} had not finished.",
                   race[1].thread, race[0].thread)
             : fmt::format(
                   "Thread {} finds another value than it left: thread {} "
                   "wrote in between.",
                   race[2].thread, race[1].thread);
}

void WriteRace(HtmlWriter& html, const AccessesSeen& race) {
  html.Element("p", {{"class", "what"}}, MeaningOf(race));
  WriteTable(html, "Accesses in the order of the witness",
             {kOrder, kThread, kWhat, kWhere, kAccessSource}, [&] {
               for (size_t i = 0; i < race.size(); ++i) {
                 WriteAccess(html, i + 1, race[i]);
               }
             });
}

void WriteOtherRaces(HtmlWriter& html, const std::vector<AccessesSeen>& races) {
  html.In("details", {{"class", "thread"}}, [&] {
    html.In("summary", {}, [&] {
      html.Text(fmt::format("{} more that met, and may be harmless",
                            races.size() - 1));
    });
    for (size_t i = 1; i < races.size(); ++i) {
      WriteRace(html, races[i]);
    }
  });
}

void WriteWait(HtmlWriter& html, const WaitSeen& wait) {
  html.In("tr", {{"role", "row"}}, [&] {
    WriteCell(html, kThread, [&] { html.Text(std::to_string(wait.thread)); });
    WriteCell(html, kHolds, [&] {
      for (const LockSeen& lock : wait.holds) {
        html.In("div", {}, [&] {
          html.Foreign(lock.name);
          html.Text(lock.shared ? " for reading at " : " at ");
          html.Foreign(SourceOf(lock.place));
        });
      }
    });
    WriteCell(html, kWaitsFor, [&] {
      html.Foreign(wait.what);
      html.Text(" ");
      html.Foreign(wait.name);
      html.Text(" at ");
      html.Foreign(SourceOf(wait.place));
    });
  });
}

// The cycle alone, where there is one.
void WriteWaits(HtmlWriter& html, std::vector<WaitSeen> waits) {
  const bool cycle = !waits.empty() && waits.front().in_cycle;
  if (cycle) {
    std::erase_if(waits, [](const WaitSeen& wait) { return !wait.in_cycle; });
  }
  html.In("section", {{"class", "race"}}, [&] {
    html.Element("h2", cycle ? "The deadlock" : "Who waits");
    html.Element("p", {{"class", "what"}},
                 cycle ? "Each waits for what the next one holds, and the last "
                         "one for the first."
                       : "Nobody is left that would wake them.");
    WriteTable(html, "Threads that wait", {kThread, kHolds, kWaitsFor}, [&] {
      for (const WaitSeen& wait : waits) {
        WriteWait(html, wait);
      }
    });
  });
}

void WriteBar(HtmlWriter& html, int64_t index, uint64_t bundles,
              uint64_t most) {
  constexpr int64_t kStep = 10;
  constexpr uint64_t kHeight = 48;
  const uint64_t height =
      bundles == 0 ? 0 : std::max<uint64_t>(2, bundles * kHeight / most);
  html.In("rect",
          {{"x", std::to_string(index * kStep)},
           {"y", std::to_string(kHeight - height)},
           {"width", std::to_string(kStep - 2)},
           {"height", std::to_string(height)}},
          [] {});
}

}  // namespace

void WriteRaces(HtmlWriter& html, std::string_view races_json) {
  const std::vector<WaitSeen> waits = ParseWaits(races_json);
  if (!waits.empty()) {
    WriteWaits(html, waits);
  }
  const std::vector<AccessesSeen> races = ParseRaces(races_json);
  if (races.empty() || races[0].empty()) {
    return;
  }
  html.In("section", {{"class", "race"}}, [&] {
    html.In("h2", {}, [&] {
      html.Text("The race: ");
      html.Foreign(VariableOf(races[0][0]));
    });
    WriteRace(html, races[0]);
    if (races.size() > 1) {
      WriteOtherRaces(html, races);
    }
  });
}

void WriteDays(HtmlWriter& html, const PageContext& context,
               const std::vector<DayCount>& days) {
  const int64_t first = context.now_s / kDay_s - kDaysShown + 1;
  uint64_t most = 1;
  uint64_t total = 0;
  for (const DayCount& day : days) {
    if (day.day >= first && day.day < first + kDaysShown) {
      most = std::max(most, day.bundles);
      total += day.bundles;
    }
  }
  const std::string label = fmt::format("{} in {} days, at most {} on one",
                                        Plural(total, "bundle", "bundles"),
                                        kDaysShown, FormatCount(most));
  html.In("figure", {{"class", "days"}}, [&] {
    html.In("svg",
            {{"viewBox", fmt::format("0 0 {} 48", kDaysShown * 10)},
             {"preserveAspectRatio", "none"},
             {"role", "img"},
             {"aria-label", label}},
            [&] {
              for (const DayCount& day : days) {
                if (day.day >= first && day.day < first + kDaysShown) {
                  WriteBar(html, day.day - first, day.bundles, most);
                }
              }
            });
    html.Element(
        "figcaption", {{"class", "muted"}},
        total == 0 ? fmt::format("none in {} days", kDaysShown) : label);
  });
}

}  // namespace clew::collector::web
