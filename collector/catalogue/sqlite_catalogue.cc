#include "collector/catalogue/sqlite_catalogue.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "collector/catalogue/notification_queue.h"
#include "collector/catalogue/text.h"

namespace clew::collector {
namespace {

constexpr int64_t kProgressUnsolved = 2;

std::string Line(const std::string& text) {
  return CleanLine(text, kLineBytesMax);
}

// The clock of the host that recorded it, unless that is plainly wrong.
int64_t SeenAt(const NewBundle& bundle) {
  const bool plausible =
      bundle.recorded_at_s > 0 &&
      bundle.recorded_at_s - kClockSlack_s <= bundle.received_at_s;
  return plausible ? bundle.recorded_at_s : bundle.received_at_s;
}

}  // namespace

int64_t ProgressOf(BundleState state) {
  switch (state) {
    case BundleState::kStored:
      return 0;
    case BundleState::kAnalysing:
      return 1;
    case BundleState::kUnsolved:
    case BundleState::kModelDiffers:  // another bundle may well be solved
      return kProgressUnsolved;
    case BundleState::kSolving:
      return 3;
    case BundleState::kContradiction:
      return 4;
    case BundleState::kWitness:
      return 5;
  }
  return 0;
}

Status RefreshGroup(Database& database, const std::string& signature) {
  // Once a bundle of the group is further than kUnsolved (2), nobody else of it
  // is solved.
  CLEW_RETURN_IF_ERROR(
      database
          .Prepare(
              "UPDATE groups SET "
              "bundles = (SELECT sum(bundles) FROM places "
              "WHERE signature = ?1), "
              "host_count = (SELECT count(DISTINCT host) FROM places "
              "WHERE signature = ?1), "
              "state = best.state, why = best.why, representative = best.id, "
              "to_solve = CASE WHEN best.progress > 2 THEN NULL ELSE "
              "(SELECT id FROM bundles WHERE signature = ?1 AND progress = 0 "
              "AND (best.progress < 2 OR fit > best.fit) "
              "ORDER BY fit DESC, received_at_s DESC, id LIMIT 1) END "
              "FROM (SELECT id, state, why, progress, fit FROM bundles "
              "WHERE signature = ?1 ORDER BY progress DESC, fit DESC, "
              "received_at_s DESC, id LIMIT 1) AS best "
              "WHERE groups.signature = ?1")
          .Text(signature)
          .Run());
  CLEW_RETURN_IF_ERROR(
      database
          .Prepare("DELETE FROM group_versions WHERE signature = ?1 AND "
                   "NOT EXISTS (SELECT 1 FROM bundles WHERE signature = ?1)")
          .Text(signature)
          .Run());
  return database
      .Prepare(
          "DELETE FROM groups WHERE signature = ?1 AND NOT EXISTS "
          "(SELECT 1 FROM bundles WHERE signature = ?1)")
      .Text(signature)
      .Run();
}

Status SqliteCatalogue::CheckPages(const std::function<bool()>& go_on) {
  CLEW_RETURN_IF_ERROR(Health());
  CLEW_ASSIGN_OR_RETURN(lease, readers_.Take());
  const Status found = CheckCataloguePages(lease.database(), path_, go_on);
  if (!found && found.error().code == ErrorCode::kCorruptInput) {
    const std::lock_guard lock(health_mutex_);
    health_ = found;
  }
  return found;
}

Status SqliteCatalogue::Health() const {
  const std::lock_guard lock(health_mutex_);
  return health_;
}

Status SqliteCatalogue::Add(const NewBundle& bundle) {
  const std::lock_guard lock(write_mutex_);
  Query query = writer_.Prepare(
      "INSERT INTO bundles(id, host, unit, command, source, failure, "
      "recorded_at_s, received_at_s, seen_s, size_bytes, fit, sufficiency) "
      "VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT(id) DO NOTHING");
  query.Blob(bundle.id.bytes())
      .Text(CleanName(bundle.host))
      .Text(CleanName(bundle.unit))
      .Text(Line(bundle.command))
      .Text(CleanName(bundle.source))
      .Text(Line(bundle.failure))
      .Int(bundle.recorded_at_s)
      .Int(bundle.received_at_s)
      .Int(SeenAt(bundle))
      .Uint(bundle.size_bytes)
      .Int(bundle.sufficiency.value_or(0));
  if (bundle.sufficiency) {
    query.Int(*bundle.sufficiency);
  } else {
    query.Null();
  }
  return query.Run();
}

Result<std::optional<std::string>> SqliteCatalogue::SignatureOf(
    const BundleId& id) {
  Query query = writer_.Prepare("SELECT signature FROM bundles WHERE id = ?");
  query.Blob(id.bytes());
  CLEW_ASSIGN_OR_RETURN(found, query.Next());
  return found ? std::optional(query.TextAt(0)) : std::nullopt;
}

Status SqliteCatalogue::Remove(const BundleId& id) {
  const std::lock_guard lock(write_mutex_);
  CLEW_ASSIGN_OR_RETURN(transaction,
                        Transaction::Begin(writer_, Transaction::Kind::kWrite));
  CLEW_ASSIGN_OR_RETURN(signature, SignatureOf(id));
  if (!signature) {
    return {};
  }
  if (!signature->empty()) {
    CLEW_RETURN_IF_ERROR(Leave(id, *signature));
  }
  for (const std::string_view sql :
       {"DELETE FROM analyses WHERE id = ?", "DELETE FROM races WHERE id = ?",
        "DELETE FROM bundles WHERE id = ?"}) {
    CLEW_RETURN_IF_ERROR(writer_.Prepare(sql).Blob(id.bytes()).Run());
  }
  CLEW_RETURN_IF_ERROR(RefreshGroup(writer_, *signature));
  return transaction.Commit();
}

// Takes a bundle off the count of its group. REQUIRES: a RefreshGroup follows.
Status SqliteCatalogue::Leave(const BundleId& id,
                              const std::string& signature) {
  CLEW_RETURN_IF_ERROR(
      writer_
          .Prepare("UPDATE places SET bundles = places.bundles - 1 "
                   "FROM bundles AS b WHERE b.id = ? AND "
                   "places.signature = b.signature AND places.host = b.host "
                   "AND places.unit = b.unit")
          .Blob(id.bytes())
          .Run());
  return writer_
      .Prepare("DELETE FROM places WHERE signature = ? AND bundles <= 0")
      .Text(signature)
      .Run();
}

Result<bool> SqliteCatalogue::HasGroup(const std::string& signature) {
  Query query = writer_.Prepare("SELECT 1 FROM groups WHERE signature = ?");
  query.Text(signature);
  return query.Next();
}

// Puts a bundle without a signature into a group.
Status SqliteCatalogue::Join(const BundleId& id, const Analysis& analysis) {
  CLEW_RETURN_IF_ERROR(
      writer_
          .Prepare("UPDATE bundles SET signature = ?, program = ?, "
                   "version = ? WHERE id = ?")
          .Text(analysis.signature)
          .Text(CleanName(analysis.program))
          .Text(CleanName(analysis.version))
          .Blob(id.bytes())
          .Run());
  CLEW_RETURN_IF_ERROR(
      writer_
          .Prepare("INSERT INTO places(signature, host, unit, bundles) "
                   "SELECT signature, host, unit, 1 FROM bundles WHERE id = ? "
                   "ON CONFLICT DO UPDATE SET bundles = bundles + 1")
          .Blob(id.bytes())
          .Run());
  CLEW_ASSIGN_OR_RETURN(known, HasGroup(analysis.signature));
  CLEW_RETURN_IF_ERROR(
      writer_
          .Prepare("INSERT INTO groups(signature, title, bundles, host_count, "
                   "first_seen_s, last_seen_s, state, why, program, rules) "
                   "SELECT signature, ?, 0, 0, seen_s, seen_s, 0, '', "
                   "program, ? FROM bundles WHERE id = ? "
                   "ON CONFLICT DO UPDATE SET program = excluded.program, "
                   "rules = max(rules, excluded.rules), "
                   "first_seen_s = min(first_seen_s, excluded.first_seen_s), "
                   "last_seen_s = max(last_seen_s, excluded.last_seen_s)")
          .Text(Line(analysis.title))
          .Int(analysis.rules)
          .Blob(id.bytes())
          .Run());
  CLEW_RETURN_IF_ERROR(NoteVersion(id, analysis));
  CLEW_RETURN_IF_ERROR(
      writer_
          .Prepare("INSERT OR REPLACE INTO analyses(id, title, backtraces) "
                   "VALUES(?, ?, ?)")
          .Blob(id.bytes())
          .Text(Line(analysis.title))
          .Text(CleanUtf8(analysis.backtraces))
          .Run());
  CLEW_RETURN_IF_ERROR(RefreshGroup(writer_, analysis.signature));
  CLEW_RETURN_IF_ERROR(ReopenIfSeenAgain(id, analysis));
  return known ? Status()
               : QueueNotification(writer_, {NotificationKind::kNewGroup, id,
                                             CleanName(analysis.version)});
}

Status SqliteCatalogue::SetState(const BundleId& id, BundleState state) {
  CLEW_RETURN_IF_ERROR(
      writer_.Prepare("UPDATE bundles SET state = ?, progress = ? WHERE id = ?")
          .Int(static_cast<int64_t>(state))
          .Int(ProgressOf(state))
          .Blob(id.bytes())
          .Run());
  CLEW_ASSIGN_OR_RETURN(signature, SignatureOf(id));
  return RefreshGroup(writer_, signature.value_or(""));
}

// Marks the one bundle that `sql` selects.
Result<std::optional<BundleId>> SqliteCatalogue::Take(std::string_view sql,
                                                      BundleState state) {
  const std::lock_guard lock(write_mutex_);
  CLEW_ASSIGN_OR_RETURN(transaction,
                        Transaction::Begin(writer_, Transaction::Kind::kWrite));
  std::optional<BundleId> id;
  {
    Query query = writer_.Prepare(sql);
    CLEW_ASSIGN_OR_RETURN(found, query.Next());
    if (!found) {
      return std::nullopt;
    }
    if (query.BlobAt(0).size() != Sha256::kBytes) {
      return CorruptInput("catalogue: an id of {} bytes",
                          query.BlobAt(0).size());
    }
    id.emplace(query.BlobAt(0));
  }
  CLEW_RETURN_IF_ERROR(
      writer_.Prepare("UPDATE bundles SET attempts = attempts + 1 WHERE id = ?")
          .Blob(id->bytes())
          .Run());
  CLEW_RETURN_IF_ERROR(SetState(*id, state));
  CLEW_RETURN_IF_ERROR(transaction.Commit());
  return id;
}

Result<std::optional<BundleId>> SqliteCatalogue::TakeForAnalysis() {
  CLEW_ASSIGN_OR_RETURN(
      taken,
      Take(fmt::format("SELECT id FROM bundles WHERE state = 0 AND "
                       "signature = '' AND {} ORDER BY received_at_s, id "
                       "LIMIT 1",
                       kNotPutOff),
           BundleState::kAnalysing));
  return taken ? taken : TakeForRegrouping();
}

Result<std::optional<BundleId>> SqliteCatalogue::TakeForSolving() {
  return Take(
      fmt::format("SELECT to_solve FROM groups JOIN bundles ON id = to_solve "
                  "WHERE to_solve IS NOT NULL AND {} "
                  "ORDER BY groups.last_seen_s DESC, groups.signature LIMIT 1",
                  kNotPutOff),
      BundleState::kSolving);
}

Status SqliteCatalogue::SetAnalysis(const BundleId& id,
                                    const Analysis& analysis) {
  if (!transfer::FromHex(analysis.signature)) {
    return InvalidArgument(
        "bundle {}: signature is {:?}, needs 64 hexadecimal digits", id.hex(),
        CleanName(analysis.signature));
  }
  // Cleaning makes at most three bytes of one.
  if (CleanUtf8(analysis.backtraces).size() > kBacktracesBytesMax) {
    return LimitReached(
        "bundle {}: backtraces of {} bytes, at most {} are kept", id.hex(),
        analysis.backtraces.size(), kBacktracesBytesMax);
  }
  const std::lock_guard lock(write_mutex_);
  CLEW_ASSIGN_OR_RETURN(transaction,
                        Transaction::Begin(writer_, Transaction::Kind::kWrite));
  regrouping_.erase(id);
  CLEW_ASSIGN_OR_RETURN(before, SignatureOf(id));
  if (!before) {
    return {};
  }
  CLEW_ASSIGN_OR_RETURN(earlier, IsOfEarlierRules(*before, analysis.rules));
  if (earlier && analysis.backtraces.empty()) {
    return transaction.Commit();  // what it has is better than its kind
  }
  if (earlier && *before != analysis.signature) {
    CLEW_RETURN_IF_ERROR(TakeIn(*before, analysis));
    *before = analysis.signature;
  }
  if (!before->empty()) {
    CLEW_RETURN_IF_ERROR(Leave(id, *before));
  }
  CLEW_RETURN_IF_ERROR(
      writer_
          .Prepare("UPDATE bundles SET state = 0, progress = 0, attempts = 0 "
                   "WHERE id = ? AND state = 1")
          .Blob(id.bytes())
          .Run());
  CLEW_RETURN_IF_ERROR(Join(id, analysis));
  CLEW_RETURN_IF_ERROR(RefreshGroup(writer_, *before));
  return transaction.Commit();
}

Status SqliteCatalogue::SetSolved(const BundleId& id,
                                  const SolveOutcome& outcome) {
  if (outcome.state == BundleState::kAnalysing ||
      outcome.state == BundleState::kSolving) {
    return InvalidArgument("bundle {}: {:?} is no outcome", id.hex(),
                           ToString(outcome.state));
  }
  const std::lock_guard lock(write_mutex_);
  const bool broken_off = outcome.state == BundleState::kStored;
  if (broken_off && regrouping_.erase(id) > 0) {
    return {};
  }
  CLEW_ASSIGN_OR_RETURN(transaction,
                        Transaction::Begin(writer_, Transaction::Kind::kWrite));
  CLEW_RETURN_IF_ERROR(
      writer_
          .Prepare("UPDATE bundles SET grade = ?, why = ?, solve_seconds = ?, "
                   "attempts = max(attempts - ?, 0) WHERE id = ?")
          .Text(CleanName(outcome.grade))
          .Text(Line(outcome.why))
          .Real(outcome.seconds)
          .Int(broken_off ? 1 : 0)
          .Blob(id.bytes())
          .Run());
  const std::string races = CleanUtf8(outcome.races);
  CLEW_RETURN_IF_ERROR(writer_
                           .Prepare("INSERT OR REPLACE INTO races(id, races) "
                                    "SELECT id, ? FROM bundles WHERE id = ?")
                           .Text(races.size() <= kRacesBytesMax ? races : "")
                           .Blob(id.bytes())
                           .Run());
  CLEW_RETURN_IF_ERROR(SetState(id, outcome.state));
  return transaction.Commit();
}

Status SqliteCatalogue::PutOff(const BundleId& id, int64_t seconds) {
  CLEW_RETURN_IF_ERROR(SetSolved(id, {.state = BundleState::kStored}));
  const std::lock_guard lock(write_mutex_);
  return writer_
      .Prepare("UPDATE bundles SET not_before_s = unixepoch() + ? WHERE id = ?")
      .Int(std::clamp<int64_t>(seconds, 0, kPutOffMax_s))
      .Blob(id.bytes())
      .Run();
}

Status SqliteCatalogue::GiveUp(const BundleId& id) {
  Analysis by_kind;
  {
    Query query = writer_.Prepare(
        "SELECT failure, command, signature FROM bundles WHERE id = ?");
    query.Blob(id.bytes());
    CLEW_ASSIGN_OR_RETURN(found, query.Next());
    if (found && query.TextAt(2).empty()) {
      by_kind = AnalysisByKind(query.TextAt(0), query.TextAt(1));
    }
  }
  if (!by_kind.signature.empty()) {
    CLEW_RETURN_IF_ERROR(Join(id, by_kind));
  }
  CLEW_RETURN_IF_ERROR(
      writer_.Prepare("UPDATE bundles SET why = ? WHERE id = ?")
          .Text(fmt::format("given up: the collector ended {} times while it "
                            "worked on it",
                            kAttemptsMax))
          .Blob(id.bytes())
          .Run());
  return SetState(id, BundleState::kUnsolved);
}

Status SqliteCatalogue::ReturnOne(const BundleId& id, bool give_up) {
  return give_up ? GiveUp(id) : SetState(id, BundleState::kStored);
}

Status SqliteCatalogue::ReturnTaken() {
  const std::lock_guard lock(write_mutex_);
  CLEW_ASSIGN_OR_RETURN(transaction,
                        Transaction::Begin(writer_, Transaction::Kind::kWrite));
  std::vector<std::pair<BundleId, bool>> taken;  // and whether to give it up
  {
    Query query = writer_.Prepare(
        "SELECT id, attempts FROM bundles WHERE state IN (1, 2)");
    while (true) {
      CLEW_ASSIGN_OR_RETURN(found, query.Next());
      if (!found) {
        break;
      }
      if (query.BlobAt(0).size() == Sha256::kBytes) {
        taken.emplace_back(BundleId(query.BlobAt(0)),
                           query.IntAt(1) >= kAttemptsMax);
      }
    }
  }
  for (const auto& [id, give_up] : taken) {
    CLEW_RETURN_IF_ERROR(ReturnOne(id, give_up));
  }
  return transaction.Commit();
}

}  // namespace clew::collector
