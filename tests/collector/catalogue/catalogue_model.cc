#include "tests/collector/catalogue/catalogue_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <span>
#include <tuple>

#include "common/text/hex.h"

namespace clew::collector {
namespace {

Sha256::Value DigestOf(std::string_view kind, uint64_t number) {
  const std::string text = fmt::format("{} {}", kind, number);
  return transfer::Sha256Of(std::as_bytes(std::span(text)));
}

int Progress(BundleState state) {
  static const std::map<BundleState, int> kOrder = {
      {BundleState::kStored, 0},        {BundleState::kAnalysing, 1},
      {BundleState::kUnsolved, 2},      {BundleState::kSolving, 3},
      {BundleState::kContradiction, 4}, {BundleState::kWitness, 5},
      {BundleState::kModelDiffers, 2}};
  return kOrder.at(state);
}

uint32_t Fit(const BundleRow& row) { return row.sufficiency.value_or(0); }

int64_t SeenAt(const BundleRow& row) {
  const bool wrong = row.recorded_at_s <= 0 ||
                     row.recorded_at_s > row.received_at_s + kClockSlack_s;
  return wrong ? row.received_at_s : row.recorded_at_s;
}

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace

BundleId IdOf(uint64_t number) { return BundleId(DigestOf("bundle", number)); }

std::string SignatureOf(uint64_t number) {
  return ToHex(DigestOf("signature", number));
}

NewBundle BundleOf(uint64_t number) {
  return {.id = IdOf(number),
          .host = "web-1",
          .unit = "bank.service",
          .command = "/usr/bin/bank --fast",
          .source = "qemu",
          .failure = "signal 6 (SIGABRT)",
          .recorded_at_s = 1000 + static_cast<int64_t>(number),
          .received_at_s = 2000 + static_cast<int64_t>(number),
          .size_bytes = 4096,
          .sufficiency = 80};
}

void CatalogueModel::Add(const NewBundle& bundle) {
  entries_.emplace(bundle.id, Entry{.row = BundleRow{bundle}, .analysis = {}});
}

void CatalogueModel::Remove(const BundleId& id) {
  entries_.erase(id);
  ForgetEmptyGroups();
}

void CatalogueModel::ForgetEmptyGroups() {
  std::erase_if(
      seen_, [&](const auto& group) { return Members(group.first).empty(); });
}

std::optional<BundleId> CatalogueModel::TakeForAnalysis() {
  Entry* best = nullptr;
  for (auto& [id, entry] : entries_) {
    const bool open =
        entry.row.state == BundleState::kStored && entry.row.signature.empty();
    if (open && (best == nullptr ||
                 entry.row.received_at_s < best->row.received_at_s)) {
      best = &entry;
    }
  }
  if (best == nullptr) {
    return std::nullopt;
  }
  best->row.state = BundleState::kAnalysing;
  ++best->attempts;
  return best->row.id;
}

void CatalogueModel::Join(Entry& entry, const Analysis& analysis) {
  entry.row.signature = analysis.signature;
  entry.analysis = analysis;
  const int64_t at_s = SeenAt(entry.row);
  auto [seen, is_new] =
      seen_.try_emplace(analysis.signature, analysis.title, at_s, at_s);
  seen->second.first_s = std::min(seen->second.first_s, at_s);
  seen->second.last_s = std::max(seen->second.last_s, at_s);
  ForgetEmptyGroups();
}

void CatalogueModel::SetAnalysis(const BundleId& id, const Analysis& analysis) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) {
    return;
  }
  if (found->second.row.state == BundleState::kAnalysing) {
    found->second.row.state = BundleState::kStored;
    found->second.attempts = 0;
  }
  Join(found->second, analysis);
}

std::vector<const CatalogueModel::Entry*> CatalogueModel::Members(
    const std::string& signature) const {
  std::vector<const Entry*> members;
  for (const auto& [id, entry] : entries_) {
    if (entry.row.signature == signature) {
      members.push_back(&entry);
    }
  }
  // The furthest first.
  std::ranges::stable_sort(members, [](const Entry* a, const Entry* b) {
    const auto key = [](const Entry* e) {
      return std::tuple(Progress(e->row.state), Fit(e->row),
                        e->row.received_at_s);
    };
    return key(a) > key(b);
  });
  return members;
}

const CatalogueModel::Entry* CatalogueModel::ToSolve(
    const std::string& signature) const {
  const auto members = Members(signature);
  int64_t in_vain = -1;  // highest sufficiency that was tried
  for (const Entry* member : members) {
    const int progress = Progress(member->row.state);
    if (progress > 2) {
      return nullptr;
    }
    if (progress == 2) {
      in_vain = std::max<int64_t>(in_vain, Fit(member->row));
    }
  }
  for (const Entry* member : members) {
    if (member->row.state == BundleState::kStored) {
      return Fit(member->row) > in_vain ? member : nullptr;
    }
  }
  return nullptr;
}

std::optional<BundleId> CatalogueModel::TakeForSolving() {
  const Entry* best = nullptr;
  int64_t best_seen_s = 0;
  for (const auto& [signature, seen] : seen_) {
    const Entry* entry = ToSolve(signature);
    if (entry != nullptr && (best == nullptr || seen.last_s > best_seen_s)) {
      best = entry;
      best_seen_s = seen.last_s;
    }
  }
  if (best == nullptr) {
    return std::nullopt;
  }
  Entry& taken = entries_.at(best->row.id);
  taken.row.state = BundleState::kSolving;
  ++taken.attempts;
  return taken.row.id;
}

void CatalogueModel::SetSolved(const BundleId& id,
                               const SolveOutcome& outcome) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) {
    return;
  }
  Entry& entry = found->second;
  entry.row.state = outcome.state;
  entry.row.grade = outcome.grade;
  entry.row.why = outcome.why;
  entry.row.solve_seconds = outcome.seconds;
  if (outcome.state == BundleState::kStored && entry.attempts > 0) {
    --entry.attempts;
  }
}

void CatalogueModel::ReturnTaken() {
  for (auto& [id, entry] : entries_) {
    const BundleState state = entry.row.state;
    if (state != BundleState::kAnalysing && state != BundleState::kSolving) {
      continue;
    }
    entry.row.state = BundleState::kStored;
    if (entry.attempts >= kAttemptsMax) {
      entry.row.state = BundleState::kUnsolved;
      entry.row.why =
          "given up: the collector ended 3 times while it worked on it";
      if (entry.row.signature.empty()) {
        Join(entry, AnalysisByKind(entry.row.failure, entry.row.command));
      }
    }
  }
}

GroupRow CatalogueModel::RowOf(const std::string& signature) const {
  const auto members = Members(signature);
  std::set<std::string> hosts;
  for (const Entry* member : members) {
    hosts.insert(member->row.host);
  }
  const Seen& seen = seen_.at(signature);
  GroupRow row{.signature = signature,
               .title = seen.title,
               .bundles = members.size(),
               .hosts = {hosts.begin(), hosts.end()},
               .host_count = hosts.size(),
               .first_seen_s = seen.first_s,
               .last_seen_s = seen.last_s,
               .state = members[0]->row.state,
               .why = members[0]->row.why,
               .representative = members[0]->row.id};
  row.hosts.resize(std::min(row.hosts.size(), kGroupHostsMax));
  return row;
}

std::vector<GroupRow> CatalogueModel::Groups(const std::string& text) const {
  std::vector<GroupRow> rows;
  for (const auto& [signature, seen] : seen_) {
    bool matches = Contains(seen.title, text);
    for (const Entry* member : Members(signature)) {
      matches = matches || Contains(member->row.host, text) ||
                Contains(member->row.unit, text);
    }
    if (matches) {
      rows.push_back(RowOf(signature));
    }
  }
  std::ranges::stable_sort(rows, std::greater(), &GroupRow::last_seen_s);
  return rows;
}

std::vector<BundleRow> CatalogueModel::Bundles(const BundleQuery& query) const {
  std::vector<BundleRow> rows;
  for (const auto& [id, entry] : entries_) {
    const BundleRow& row = entry.row;
    if ((query.signature.empty() || row.signature == query.signature) &&
        (query.filter.host.empty() || row.host == query.filter.host) &&
        (!query.state || row.state == *query.state)) {
      rows.push_back(row);
    }
  }
  std::ranges::stable_sort(rows, std::greater(), &BundleRow::received_at_s);
  return rows;
}

std::optional<Analysis> CatalogueModel::AnalysisOf(const BundleId& id) const {
  const auto found = entries_.find(id);
  if (found == entries_.end() || found->second.row.signature.empty()) {
    return std::nullopt;
  }
  return found->second.analysis;
}

CatalogueCounts CatalogueModel::Counts() const {
  CatalogueCounts counts;
  counts.by_state.resize(kBundleStates);
  std::set<std::string> hosts;
  for (const auto& [id, entry] : entries_) {
    ++counts.bundles;
    counts.bytes += entry.row.size_bytes;
    ++counts.by_state[static_cast<size_t>(entry.row.state)];
    hosts.insert(entry.row.host);
  }
  counts.hosts = hosts.size();
  counts.groups = seen_.size();
  return counts;
}

std::string Describe(const std::optional<BundleId>& id) {
  return id ? id->hex() : "none";
}

std::string Describe(const GroupRow& row) {
  return fmt::format(
      "group {} {:?}: {} bundles, {} hosts {}, {}..{}, {} {:?} {}",
      row.signature, row.title, row.bundles, row.host_count, row.hosts,
      row.first_seen_s, row.last_seen_s, ToString(row.state), row.why,
      Describe(row.representative));
}

std::string Describe(const BundleRow& row) {
  return fmt::format(
      "bundle {}: {:?} {:?} {:?} {:?} {:?} {} {} {} bytes, fit {}, {} {} {:?} "
      "{:?} {} s",
      row.id.hex(), row.host, row.unit, row.command, row.source, row.failure,
      row.recorded_at_s, row.received_at_s, row.size_bytes,
      row.sufficiency ? static_cast<int64_t>(*row.sufficiency) : -1,
      ToString(row.state), row.signature, row.grade, row.why,
      row.solve_seconds);
}

std::string Describe(const CatalogueCounts& counts) {
  return fmt::format("{} bundles, {} groups, {} hosts, {} bytes, {}",
                     counts.bundles, counts.groups, counts.hosts, counts.bytes,
                     counts.by_state);
}

std::string Describe(const std::optional<Analysis>& analysis) {
  return analysis ? fmt::format("{} {:?} {:?}", analysis->signature,
                                analysis->title, analysis->backtraces)
                  : "none";
}

}  // namespace clew::collector
