// Versions of programs, the marks that engineers give groups, and how groups
// whose signatures are of earlier rules become present ones.
#include <algorithm>
#include <utility>

#include "collector/catalogue/catalogue_filter.h"
#include "collector/catalogue/notification_queue.h"
#include "collector/catalogue/sqlite_catalogue.h"
#include "collector/catalogue/text.h"

namespace clew::collector {
namespace {

// A group of earlier rules is taken so often.
constexpr int64_t kTriesMax = 3;

Result<int64_t> IntOf(Query& query) {
  CLEW_ASSIGN_OR_RETURN(found, query.Next());
  return found ? query.IntAt(0) : 0;
}

}  // namespace

// ---- Versions

// The bundle's version of its program, among all and among those of its group.
Status SqliteCatalogue::NoteVersion(const BundleId& id,
                                    const Analysis& analysis) {
  if (analysis.version.empty()) {
    return {};
  }
  CLEW_RETURN_IF_ERROR(
      writer_
          .Prepare("INSERT INTO versions(program, version, rank) "
                   "SELECT b.program, b.version, 1 + ifnull((SELECT max(rank) "
                   "FROM versions AS v WHERE v.program = b.program), 0) "
                   "FROM bundles AS b WHERE b.id = ? ON CONFLICT DO NOTHING")
          .Blob(id.bytes())
          .Run());
  return writer_
      .Prepare(
          "INSERT INTO group_versions(signature, version, rank, first_seen_s, "
          "last_seen_s) SELECT b.signature, b.version, v.rank, b.seen_s, "
          "b.seen_s FROM bundles AS b JOIN versions AS v USING(program, "
          "version) WHERE b.id = ? ON CONFLICT DO UPDATE SET "
          "first_seen_s = min(first_seen_s, excluded.first_seen_s), "
          "last_seen_s = max(last_seen_s, excluded.last_seen_s)")
      .Blob(id.bytes())
      .Run();
}

// A bundle whose version is not known says nothing of later ones.
Status SqliteCatalogue::ReopenIfSeenAgain(const BundleId& id,
                                          const Analysis& analysis) {
  {
    Query query = writer_.Prepare(
        "SELECT 1 FROM marks AS m JOIN bundles AS b ON b.id = ?1 "
        "JOIN versions AS v ON v.program = b.program AND v.version = b.version "
        "WHERE m.signature = ?2 AND m.resolved = 1 AND v.rank >= m.boundary "
        "AND b.received_at_s >= m.resolved_at_s");
    query.Blob(id.bytes()).Text(analysis.signature);
    CLEW_ASSIGN_OR_RETURN(seen_again, query.Next());
    if (!seen_again) {
      return {};
    }
  }
  const std::string version = CleanName(analysis.version);
  CLEW_RETURN_IF_ERROR(
      writer_
          .Prepare("UPDATE marks SET resolved = 0, reopened_in = ? "
                   "WHERE signature = ?")
          .Text(version)
          .Text(analysis.signature)
          .Run());
  return QueueNotification(writer_, {NotificationKind::kReopened, id, version});
}

Result<std::vector<VersionCount>> SqliteCatalogue::VersionsOf(
    const std::string& signature, uint64_t most) const {
  CLEW_ASSIGN_OR_RETURN(lease, readers_.Take());
  Query query = lease.database().Prepare(
      "SELECT version, first_seen_s, last_seen_s FROM group_versions "
      "WHERE signature = ? ORDER BY rank DESC LIMIT ?");
  query.Text(signature).Int(static_cast<int64_t>(std::min(most, kPageRowsMax)));
  std::vector<VersionCount> versions;
  while (true) {
    CLEW_ASSIGN_OR_RETURN(found, query.Next());
    if (!found) {
      return versions;
    }
    versions.push_back({.version = query.TextAt(0),
                        .first_seen_s = query.IntAt(1),
                        .last_seen_s = query.IntAt(2)});
  }
}

Result<std::vector<DayCount>> SqliteCatalogue::DaysOf(
    const std::string& signature, int64_t first_day) const {
  CLEW_ASSIGN_OR_RETURN(lease, readers_.Take());
  Query query = lease.database().Prepare(
      "SELECT seen_s / 86400 AS day, count(*) FROM bundles "
      "WHERE signature = ? AND seen_s >= ? GROUP BY day ORDER BY day LIMIT ?");
  query.Text(signature)
      .Int(first_day * 86400)
      .Int(static_cast<int64_t>(kPageRowsMax));
  std::vector<DayCount> days;
  while (true) {
    CLEW_ASSIGN_OR_RETURN(found, query.Next());
    if (!found) {
      return days;
    }
    days.push_back({.day = query.IntAt(0),
                    .bundles = static_cast<uint64_t>(query.IntAt(1))});
  }
}

Result<std::string> SqliteCatalogue::RacesOf(const BundleId& id) const {
  CLEW_ASSIGN_OR_RETURN(lease, readers_.Take());
  Query query =
      lease.database().Prepare("SELECT races FROM races WHERE id = ?");
  query.Blob(id.bytes());
  CLEW_ASSIGN_OR_RETURN(found, query.Next());
  return found ? query.TextAt(0) : std::string();
}

// ---- Engineers

// The rank of a version of the group's program; 0: none such was seen. What is
// the same text goes before a build-id that only begins so.
Result<int64_t> SqliteCatalogue::RankOf(const std::string& signature,
                                        const std::string& version) {
  if (version.empty()) {
    return 0;
  }
  Query query = writer_.Prepare(
      fmt::format("SELECT v.rank FROM versions AS v JOIN groups AS g "
                  "ON g.program = v.program WHERE g.signature = ? AND {} "
                  "ORDER BY version = ? DESC, v.rank LIMIT 1",
                  kIsVersion));
  query.Text(signature).Text(version).Text(version).Text(version).Text(version);
  return IntOf(query);
}

// The rank from which on a version reopens the group.
Result<int64_t> SqliteCatalogue::BoundaryOf(const std::string& signature,
                                            const std::string& version) {
  CLEW_ASSIGN_OR_RETURN(rank, RankOf(signature, version));
  if (rank > 0) {
    return rank;
  }
  Query last = writer_.Prepare(
      "SELECT ifnull(max(v.rank), 0) FROM versions AS v JOIN groups AS g "
      "ON g.program = v.program WHERE g.signature = ?");
  last.Text(signature);
  CLEW_ASSIGN_OR_RETURN(latest, IntOf(last));
  return latest + 1;
}

// What is resolved so already stays: what came since counts against it.
Status SqliteCatalogue::Resolve(const std::string& signature,
                                const std::string& version) {
  CLEW_ASSIGN_OR_RETURN(boundary, BoundaryOf(signature, version));
  return writer_
      .Prepare(
          "UPDATE marks SET resolved = 1, resolved_in = ?1, boundary = ?2, "
          "resolved_at_s = at_s, reopened_in = '' WHERE signature = ?3 "
          "AND NOT (resolved = 1 AND resolved_in = ?1)")
      .Text(version)
      .Int(boundary)
      .Text(signature)
      .Run();
}

Status SqliteCatalogue::Reopen(const std::string& signature) {
  return writer_
      .Prepare(
          "UPDATE marks SET resolved = 0, resolved_in = '' "
          "WHERE signature = ?")
      .Text(signature)
      .Run();
}

Status SqliteCatalogue::ChangeMark(const std::string& signature,
                                   const GroupChange& change) {
  CLEW_RETURN_IF_ERROR(
      writer_
          .Prepare("INSERT INTO marks(signature, by, at_s) VALUES(?, ?, ?) "
                   "ON CONFLICT DO UPDATE SET by = excluded.by, "
                   "at_s = excluded.at_s")
          .Text(signature)
          .Text(CleanName(change.by))
          .Int(change.at_s)
          .Run());
  if (change.note) {
    CLEW_RETURN_IF_ERROR(
        writer_.Prepare("UPDATE marks SET note = ? WHERE signature = ?")
            .Text(CleanLine(*change.note, kNoteBytesMax))
            .Text(signature)
            .Run());
  }
  if (!change.resolved) {
    return {};
  }
  return *change.resolved ? Resolve(signature, CleanName(change.version))
                          : Reopen(signature);
}

Status SqliteCatalogue::Change(const std::string& signature,
                               const GroupChange& change) {
  const std::lock_guard lock(write_mutex_);
  // What people have said cannot be made again.
  CLEW_RETURN_IF_ERROR(writer_.Execute("PRAGMA synchronous = FULL"));
  const auto changed = [&]() -> Status {
    CLEW_ASSIGN_OR_RETURN(
        transaction, Transaction::Begin(writer_, Transaction::Kind::kWrite));
    CLEW_ASSIGN_OR_RETURN(known, HasGroup(signature));
    if (!known) {
      return InvalidArgument("there is no group {:?}", signature);
    }
    CLEW_RETURN_IF_ERROR(ChangeMark(signature, change));
    return transaction.Commit();
  }();
  (void)writer_.Execute("PRAGMA synchronous = NORMAL");  // FULL is safer still
  return changed;
}

// ---- Earlier rules

Result<bool> SqliteCatalogue::IsOfEarlierRules(const std::string& signature,
                                               int rules) {
  Query query =
      writer_.Prepare("SELECT 1 FROM groups WHERE signature = ? AND rules < ?");
  query.Text(signature).Int(rules);
  return query.Next();
}

// Takes no notice of states: a representative keeps its witness.
Result<std::optional<BundleId>> SqliteCatalogue::TakeForRegrouping() {
  const std::lock_guard lock(write_mutex_);
  std::optional<BundleId> id;
  std::string signature;
  {
    Query query = writer_.Prepare(fmt::format(
        "SELECT groups.signature, representative FROM groups "
        "JOIN bundles ON id = representative WHERE rules < ? AND tries < ? "
        "AND {} LIMIT ?",
        kNotPutOff));
    query.Int(kSignatureRules)
        .Int(kTriesMax)
        .Int(static_cast<int64_t>(regrouping_.size()) + 1);
    while (!id) {
      CLEW_ASSIGN_OR_RETURN(found, query.Next());
      if (!found) {
        return std::nullopt;
      }
      if (query.BlobAt(1).size() == Sha256::kBytes &&
          !regrouping_.contains(BundleId(query.BlobAt(1)))) {
        signature = query.TextAt(0);
        id.emplace(query.BlobAt(1));
      }
    }
  }
  CLEW_RETURN_IF_ERROR(
      writer_.Prepare("UPDATE groups SET tries = tries + 1 WHERE signature = ?")
          .Text(signature)
          .Run());
  regrouping_.insert(*id);
  return id;
}

// Makes all of group `former` part of the group of `analysis`: failures that
// earlier rules took for the same are the same.
Status SqliteCatalogue::TakeIn(const std::string& former,
                               const Analysis& analysis) {
  struct Step {
    std::string_view sql;  // ?1: former, ?2: present
  };
  constexpr Step kSteps[] = {
      {"INSERT INTO groups(signature, title, bundles, host_count, "
       "first_seen_s, last_seen_s, state, why) SELECT ?2, title, 0, 0, "
       "first_seen_s, last_seen_s, 0, '' FROM groups WHERE signature = ?1 "
       "ON CONFLICT DO UPDATE SET "
       "first_seen_s = min(first_seen_s, excluded.first_seen_s), "
       "last_seen_s = max(last_seen_s, excluded.last_seen_s)"},
      {"INSERT INTO places(signature, host, unit, bundles) SELECT ?2, host, "
       "unit, bundles FROM places WHERE signature = ?1 "
       "ON CONFLICT DO UPDATE SET bundles = bundles + excluded.bundles"},
      {"UPDATE OR IGNORE group_versions SET signature = ?2 "
       "WHERE signature = ?1"},
      {"UPDATE OR IGNORE marks SET signature = ?2 WHERE signature = ?1"},
      {"UPDATE bundles SET signature = ?2 WHERE signature = ?1"},
      {"UPDATE former_signatures SET present = ?2 WHERE present = ?1"},
      {"INSERT OR REPLACE INTO former_signatures VALUES(?1, ?2)"}};
  for (const Step& step : kSteps) {
    CLEW_RETURN_IF_ERROR(
        writer_.Prepare(step.sql).Text(former).Text(analysis.signature).Run());
  }
  for (const std::string_view sql :
       {"DELETE FROM places WHERE signature = ?",
        "DELETE FROM group_versions WHERE signature = ?",
        "DELETE FROM groups WHERE signature = ?"}) {
    CLEW_RETURN_IF_ERROR(writer_.Prepare(sql).Text(former).Run());
  }
  CLEW_RETURN_IF_ERROR(
      writer_.Prepare("UPDATE groups SET title = ? WHERE signature = ?")
          .Text(CleanLine(analysis.title, kLineBytesMax))
          .Text(analysis.signature)
          .Run());
  return writer_.Prepare("UPDATE bundles SET program = ? WHERE signature = ?")
      .Text(CleanName(analysis.program))
      .Text(analysis.signature)
      .Run();
}

Result<std::vector<std::string>> SqliteCatalogue::SignaturesWith(
    const std::string& prefix, uint64_t most) const {
  CLEW_ASSIGN_OR_RETURN(lease, readers_.Take());
  // Digits are below the sign that ends the range.
  Query query = lease.database().Prepare(
      "SELECT signature FROM groups WHERE signature >= ?1 AND "
      "signature < ?1 || '~' ORDER BY signature LIMIT ?2");
  query.Text(prefix).Int(static_cast<int64_t>(std::min(most, kPageRowsMax)));
  std::vector<std::string> signatures;
  while (true) {
    CLEW_ASSIGN_OR_RETURN(found, query.Next());
    if (!found) {
      return signatures;
    }
    signatures.push_back(query.TextAt(0));
  }
}

Result<std::string> SqliteCatalogue::PresentSignature(
    const std::string& signature) const {
  CLEW_ASSIGN_OR_RETURN(lease, readers_.Take());
  Query query = lease.database().Prepare(
      "SELECT present FROM former_signatures WHERE former = ?");
  query.Text(signature);
  CLEW_ASSIGN_OR_RETURN(found, query.Next());
  return found ? query.TextAt(0) : signature;
}

}  // namespace clew::collector
