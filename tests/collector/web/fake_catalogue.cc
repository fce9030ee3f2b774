#include "tests/collector/web/fake_catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <set>

#include "common/check.h"
#include "common/digest.h"

namespace clew::collector::web {
namespace {

template <class Row>
ListPage<Row> Cut(const std::vector<Row>& rows, uint64_t offset,
                  uint64_t limit) {
  ListPage<Row> page;
  page.total = rows.size();
  for (uint64_t i = offset; i < rows.size() && page.rows.size() < limit; ++i) {
    page.rows.push_back(rows[i]);
  }
  return page;
}

nlohmann::json SampleFrame(const char* function, const char* module,
                           uint64_t offset, const char* file, int line) {
  return {{"function", function},
          {"module", module},
          {"build_id", "5c0fc84b2d19a0a4be4d1d8e5dfe1be92f5d43a1"},
          {"offset", fmt::format("{:#x}", offset)},
          {"file", file},
          {"line", line}};
}

}  // namespace

Status FakeCatalogue::Check() const {
  if (on_query) {
    on_query();
  }
  return fails ? SystemError(EIO, "catalogue.sqlite: cannot read") : Status();
}

Result<ListPage<GroupRow>> FakeCatalogue::Groups(
    const GroupQuery& query) const {
  CLEW_RETURN_IF_ERROR(Check());
  std::vector<GroupRow> found;
  std::ranges::copy_if(groups, std::back_inserter(found),
                       [&](const GroupRow& group) {
                         return group.title.contains(query.text) &&
                                (query.filter.program.empty() ||
                                 group.program == query.filter.program) &&
                                (!query.state || group.state == *query.state);
                       });
  return Cut(found, query.offset, query.limit);
}

Result<ListPage<BundleRow>> FakeCatalogue::Bundles(
    const BundleQuery& query) const {
  CLEW_RETURN_IF_ERROR(Check());
  std::vector<BundleRow> found;
  std::ranges::copy_if(bundles, std::back_inserter(found),
                       [&](const BundleRow& bundle) {
                         return (query.signature.empty() ||
                                 bundle.signature == query.signature) &&
                                (query.filter.host.empty() ||
                                 bundle.host == query.filter.host) &&
                                (!query.state || bundle.state == *query.state);
                       });
  return Cut(found, query.offset, query.limit);
}

Result<std::optional<GroupRow>> FakeCatalogue::Group(
    const std::string& signature) const {
  CLEW_RETURN_IF_ERROR(Check());
  const auto found = std::ranges::find(groups, signature, &GroupRow::signature);
  return found == groups.end() ? std::nullopt : std::optional(*found);
}

Result<std::optional<BundleRow>> FakeCatalogue::Bundle(
    const BundleId& id) const {
  CLEW_RETURN_IF_ERROR(Check());
  const auto found = std::ranges::find(bundles, id, &BundleRow::id);
  return found == bundles.end() ? std::nullopt : std::optional(*found);
}

Result<std::optional<Analysis>> FakeCatalogue::AnalysisOf(
    const BundleId& id) const {
  CLEW_RETURN_IF_ERROR(Check());
  const auto found = analyses.find(id);
  return found == analyses.end() ? std::nullopt : std::optional(found->second);
}

Result<std::vector<VersionCount>> FakeCatalogue::VersionsOf(const std::string&,
                                                            uint64_t) const {
  CLEW_RETURN_IF_ERROR(Check());
  return versions;
}

Result<std::vector<DayCount>> FakeCatalogue::DaysOf(const std::string&,
                                                    int64_t) const {
  CLEW_RETURN_IF_ERROR(Check());
  return days;
}

Result<std::string> FakeCatalogue::RacesOf(const BundleId& id) const {
  CLEW_RETURN_IF_ERROR(Check());
  const auto found = races.find(id);
  return found == races.end() ? std::string() : found->second;
}

Result<CatalogueCounts> FakeCatalogue::Counts() const {
  CLEW_RETURN_IF_ERROR(Check());
  CatalogueCounts counts;
  counts.by_state.resize(kBundleStates);
  std::set<std::string> hosts;
  for (const BundleRow& bundle : bundles) {
    ++counts.bundles;
    counts.bytes += bundle.size_bytes;
    ++counts.by_state[static_cast<size_t>(bundle.state)];
    hosts.insert(bundle.host);
  }
  counts.groups = groups.size();
  counts.groups_by_state.resize(kBundleStates);
  for (const GroupRow& group : groups) {
    ++counts.groups_by_state[static_cast<size_t>(group.state)];
  }
  counts.hosts = hosts.size();
  return counts;
}

std::string SampleSignature(uint64_t number) {
  return fmt::format("{:016x}{:016x}{:016x}{:016x}", MixBits(number * 4 + 1),
                     MixBits(number * 4 + 2), MixBits(number * 4 + 3),
                     MixBits(number * 4 + 4));
}

BundleId SampleId(uint64_t number) {
  const auto id = BundleId::Parse(SampleSignature(number + 1'000'000));
  CLEW_CHECK(id, "no id");
  return *id;
}

BundleRow SampleBundle(uint64_t number) {
  BundleRow row{NewBundle{
      .id = SampleId(number),
      .host = fmt::format("web-{:02}.example", number % 23),
      .unit = "bank.service",
      .command = "/usr/lib/bank/bank --clerks 3",
      .source = "qemu",
      .failure = "signal 6 (SIGABRT)",
      .recorded_at_s = kNow_s - 540 - static_cast<int64_t>(number) * 971,
      .received_at_s = kNow_s - 500 - static_cast<int64_t>(number) * 971,
      .size_bytes = 3'481'600 + number * 7919,
      .sufficiency = 97}};
  row.state = BundleState::kWitness;
  row.signature = SampleSignature(number);
  row.grade = "path-exact";
  row.solve_seconds = 0.4;
  return row;
}

GroupRow SampleGroup(uint64_t number) {
  const BundleRow bundle = SampleBundle(number);
  return {.signature = bundle.signature,
          .title = "SIGABRT in main (assertion of balance)",
          .bundles = 1,
          .hosts = {bundle.host},
          .host_count = 1,
          .first_seen_s = bundle.recorded_at_s,
          .last_seen_s = bundle.recorded_at_s,
          .state = bundle.state,
          .why = {},
          .representative = bundle.id};
}

std::string SampleBacktraces() {
  using nlohmann::json;
  const char* bank = "/usr/lib/bank/bank";
  const char* libc = "/lib/x86_64-linux-gnu/libc.so.6";
  const json failed = {
      {"thread", 18484},
      {"failed", true},
      {"frames",
       {SampleFrame("main", bank, 0x13a8, "bank.c", 62),
        SampleFrame("__libc_start_call_main", libc, 0x2724a,
                    "../sysdeps/nptl/libc_start_call_main.h", 58),
        SampleFrame("_start", bank, 0x10c1, "", 0)}}};
  const json clerk = {{"thread", 18486},
                      {"failed", false},
                      {"frames",
                       {SampleFrame("Deposit", bank, 0x11c6, "bank.c", 27),
                        SampleFrame("Clerk", bank, 0x1236, "bank.c", 41),
                        SampleFrame("start_thread", libc, 0x891f5,
                                    "nptl/pthread_create.c", 442)}}};
  const json waiting = {{"thread", 18485},
                        {"failed", false},
                        {"frames", {SampleFrame("", libc, 0x10e2d4, "", 0)}}};
  return json{{"signature", SampleSignature(0)},
              {"title", "SIGABRT in main"},
              {"threads", {clerk, waiting, failed}}}
      .dump();
}

std::string SampleRaces(const std::string& name) {
  using nlohmann::json;
  const auto access = [&](int thread, const char* kind, int line, int value) {
    json object = SampleFrame("Deposit", "bank", 0x11c6, "bank.c", line);
    object.update({{"thread", thread},
                   {"kind", kind},
                   {"variable", name},
                   {"addr", 0x404050},
                   {"value", value}});
    return object;
  };
  json race = {{"accesses", json::array({access(11, "read", 26, 1940),
                                         access(12, "write", 22, 2040),
                                         access(11, "write", 27, 1950)})}};
  return json::array({race, race})
      .dump(-1, ' ', false, json::error_handler_t::ignore);
}

std::string SampleDeadlock(const std::string& name) {
  using nlohmann::json;
  const auto wait = [](int thread, bool in_cycle, const char* what, int line,
                       json holds) {
    json object = SampleFrame("Pay", "bank", 0x11c6, "bank.c", line);
    object.update({{"thread", thread},
                   {"in_cycle", in_cycle},
                   {"for", what},
                   {"variable", ""},
                   {"addr", 0x404050},
                   {"holds", std::move(holds)}});
    return object;
  };
  json held = SampleFrame("Pay", "bank", 0x11c0, "bank.c", 12);
  held.update({{"variable", name}, {"addr", 0x404010}, {"shared", true}});
  json joins = wait(12, true, "end of thread", 30, json::array());
  joins["joins"] = 11;
  json races = json::parse(SampleRaces("_rtld_global"));
  for (json& race : races) {
    race["internal"] = true;
  }
  return json{{"races", races},
              {"waits",
               {wait(11, true, "lock", 14, json::array({held})), joins,
                wait(10, false, "lock", 99, json::array())}}}
      .dump(-1, ' ', false, json::error_handler_t::ignore);
}

void FillWithOne(FakeCatalogue& catalogue) {
  catalogue.races[SampleId(0)] = SampleRaces("balance");
  catalogue.versions = {{.version = "5c0fc84b2d19a0a4be4d1d8e5dfe1be9"}};
  catalogue.days = {{.day = kNow_s / 86400, .bundles = 3},
                    {.day = 1, .bundles = 1}};
  catalogue.bundles = {SampleBundle(0)};
  catalogue.groups = {SampleGroup(0)};
  catalogue.analyses[SampleId(0)] = {.signature = SampleSignature(0),
                                     .title = catalogue.groups[0].title,
                                     .backtraces = SampleBacktraces()};
}

std::vector<std::string> HostileTexts() {
  std::string long_name = "std::__detail::_Map_base<";
  while (long_name.size() < 500) {
    long_name += "std::pair<const std::basic_string<char>, ";
  }
  return {"<script>alert(1)</script>",
          "\"><img src=x onerror=alert(1)>",
          "' onmouseover='alert(1)",
          "</title></td></table><h1>mine</h1>",
          "<!-- -->",
          "&lt;b&gt; &amp; &#60;",
          "\xe2\x80\xaegnp.exe \xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d",
          "broken \xff\xfe\x80 UTF-8 \xc3",
          "nul \x01 bell \x07 escape \x1b[31mred",
          std::string(500, 'x'),
          long_name,
          "javascript:alert(1)",
          "a b&c=d?e#f%2e%2e/../..",
          "\xf0\x9f\xa7\xb6 \xe7\xb7\x9a clew"};
}

void FillWithHostileNames(FakeCatalogue& catalogue) {
  uint64_t number = 0;
  for (const std::string& text : HostileTexts()) {
    BundleRow bundle = SampleBundle(number);
    bundle.host = text;
    bundle.unit = text;
    bundle.command = text;
    bundle.source = text;
    bundle.failure = text;
    bundle.grade = text;
    bundle.state = static_cast<BundleState>(number % kBundleStates);
    bundle.why = text;
    GroupRow group = SampleGroup(number);
    group.title = text;
    group.hosts = {text, "b", text};
    group.host_count = 12;
    group.state = bundle.state;
    group.why = text;
    nlohmann::json frame = {{"function", text}, {"module", text},
                            {"build_id", text}, {"offset", text},
                            {"file", text},     {"line", 1}};
    nlohmann::json document = {
        {"threads",
         {{{"thread", 1}, {"failed", true}, {"frames", {frame, frame}}}}}};
    catalogue.analyses[bundle.id] = {
        .signature = bundle.signature,
        .title = text,
        .backtraces = document.dump(-1, ' ', false,
                                    nlohmann::json::error_handler_t::ignore)};
    catalogue.races[bundle.id] = SampleRaces(text);
    group.program = text;
    group.first_version = text;
    group.mark = {.resolved = number % 2 == 0,
                  .resolved_in = text,
                  .reopened_in = text,
                  .note = text,
                  .by = text};
    bundle.program = text;
    bundle.version = text;
    catalogue.versions = {{.version = text}};
    catalogue.bundles.push_back(bundle);
    catalogue.groups.push_back(group);
    ++number;
  }
}

void FillWithFleet(FakeCatalogue& catalogue) {
  static constexpr std::array kTitles = {
      "bank: Assertion `balance == expected' failed (SIGABRT in main)",
      "bank: SIGSEGV at 0x18 in Cache::Evict",
      "SIGABRT in std::mutex::unlock",
      "hang in Scheduler::Drain",
      "SIGSEGV in std::vector<Order>::push_back",
      "SIGBUS in MappedLog::Append",
      "exit 3 of /usr/bin/importer"};
  static constexpr std::array kStates = {
      BundleState::kWitness, BundleState::kWitness,
      BundleState::kSolving, BundleState::kUnsolved,
      BundleState::kStored,  BundleState::kContradiction,
      BundleState::kWitness, BundleState::kAnalysing};
  Random random(7);
  for (int64_t day = 0; day < 30; day += 2) {
    catalogue.days.push_back(
        {.day = kNow_s / 86400 - day, .bundles = 1 + random.Below(40)});
  }
  for (uint64_t i = 0; i < 120; ++i) {
    BundleRow bundle = SampleBundle(i);
    bundle.state = kStates[random.Below(kStates.size())];
    if (bundle.state == BundleState::kUnsolved) {
      bundle.why = "no answer within 300 s; 812 contested reads";
    }
    bundle.failure = kTitles[random.Below(kTitles.size())];
    GroupRow group = SampleGroup(i);
    group.title = bundle.failure;
    group.state = bundle.state;
    group.why = bundle.why;
    group.bundles = 1 + random.Below(400);
    group.host_count = 1 + random.Below(14);
    group.hosts.clear();
    for (uint64_t h = 0; h < std::min<uint64_t>(3, group.host_count); ++h) {
      group.hosts.push_back(fmt::format("web-{:02}.example", (i + h * 5) % 23));
    }
    group.first_seen_s =
        group.last_seen_s - static_cast<int64_t>(random.Below(30 * 86400));
    if (bundle.state == BundleState::kWitness) {
      catalogue.races[bundle.id] = SampleRaces("balance");
    }
    group.program = bundle.program = "bank";
    group.first_version = "5c0fc84b2d19a0a4be4d1d8e5dfe1be9";
    group.last_version = bundle.version = "77ab01e9d3f05c3b9f1e2d4c5b6a7988";
    group.mark = {.resolved = i % 7 == 1,
                  .reopened_in = i % 7 == 0 ? "77ab01e9d3f0" : ""};
    catalogue.versions = {{.version = "77ab01e9d3f0"},
                          {.version = group.first_version}};
    catalogue.bundles.push_back(bundle);
    catalogue.groups.push_back(group);
    catalogue.analyses[bundle.id] = {.signature = bundle.signature,
                                     .title = group.title,
                                     .backtraces = SampleBacktraces()};
  }
}

}  // namespace clew::collector::web
