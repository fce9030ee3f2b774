#include "collector/catalogue/host_table.h"

#include <algorithm>
#include <array>
#include <utility>

#include "collector/catalogue/text.h"

namespace clew::collector {
namespace {

constexpr std::array<std::string_view, kHostHealths> kHealthNames = {
    "fine", "trouble", "silent"};

// The number of a HostHealth; ?1 is the latest time of the silent ones.
constexpr std::string_view kHealth =
    "CASE WHEN seen_s <= ?1 THEN 2 WHEN source_error <> '' OR "
    "units_error <> '' OR stuck > 0 OR lost > 0 THEN 1 ELSE 0 END";
// ?2 and ?3: pattern and health, or null where each will do.
constexpr std::string_view kMatches =
    "(?2 IS NULL OR host LIKE ?2 ESCAPE '\\') AND "
    "(?3 IS NULL OR health = ?3)";

uint64_t NumberAt(const Query& query, int column) {
  return static_cast<uint64_t>(query.IntAt(column));
}

void BindMatch(Query& statement, const HostQuery& query, int64_t now_s) {
  statement.Int(now_s - kSilentAfter_s);
  if (query.text.empty()) {
    statement.Null();
  } else {
    statement.Text(LikePattern(query.text));
  }
  if (query.health) {
    statement.Int(static_cast<int64_t>(*query.health));
  } else {
    statement.Null();
  }
}

HostRow RowAt(const Query& query) {
  HostRow row;
  row.host = query.TextAt(0);
  row.seen_s = query.IntAt(1);
  row.version = query.TextAt(2);
  row.state = query.TextAt(3);
  row.source = query.TextAt(4);
  row.source_error = query.TextAt(5);
  row.units_error = query.TextAt(6);
  row.last_error = query.TextAt(7);
  row.last_error_at_s = query.IntAt(8);
  row.uptime_s = NumberAt(query, 9);
  row.spool_bundles = NumberAt(query, 10);
  row.spool_bytes = NumberAt(query, 11);
  row.spool_bytes_max = NumberAt(query, 12);
  row.stuck = NumberAt(query, 13);
  row.refused = NumberAt(query, 14);
  row.saved = NumberAt(query, 15);
  row.not_saved = NumberAt(query, 16);
  row.uploaded = NumberAt(query, 17);
  row.lost = NumberAt(query, 18);
  row.health = static_cast<HostHealth>(query.IntAt(19));
  return row;
}

}  // namespace

std::string_view ToString(HostHealth health) {
  return kHealthNames.at(static_cast<size_t>(health));
}

std::optional<HostHealth> HealthNamed(std::string_view name) {
  const auto* found = std::ranges::find(kHealthNames, name);
  return found == kHealthNames.end() ? std::nullopt
                                     : std::optional(static_cast<HostHealth>(
                                           found - kHealthNames.begin()));
}

Result<std::unique_ptr<HostTable>> HostTable::Open(const std::string& path,
                                                   uint64_t hosts_max) {
  CLEW_ASSIGN_OR_RETURN(database,
                        Database::Open(path, Database::Mode::kReadWriteCreate));
  // A report that a power cut takes is told again.
  CLEW_RETURN_IF_ERROR(database.Execute("PRAGMA synchronous = NORMAL"));
  return std::unique_ptr<HostTable>(
      new HostTable(std::move(database), hosts_max));
}

Status HostTable::Put(const std::string& host,
                      const transfer::HostReport& report, int64_t now_s) {
  const auto word = [](const std::string& text) {
    return CleanLine(text, kWordBytesMax);
  };
  const auto line = [](const std::string& text) {
    return CleanLine(text, kLineBytesMax);
  };
  const std::lock_guard lock(mutex_);
  CLEW_RETURN_IF_ERROR(
      database_
          .Prepare("INSERT OR REPLACE INTO host_reports(host, seen_s, version, "
                   "state, source, source_error, units_error, last_error, "
                   "last_error_s, uptime_s, spool_bundles, spool_bytes, "
                   "spool_bytes_max, stuck, refused, saved, not_saved, "
                   "uploaded, lost) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
                   "?, ?, ?, ?, ?, ?, ?)")
          .Text(CleanName(host))
          .Int(now_s)
          .Text(word(report.version))
          .Text(word(report.state))
          .Text(word(report.source))
          .Text(line(report.source_error))
          .Text(line(report.units_error))
          .Text(line(report.last_error))
          .Int(report.last_error_at_s)
          .Uint(report.uptime_s)
          .Uint(report.spool_bundles)
          .Uint(report.spool_bytes)
          .Uint(report.spool_bytes_max)
          .Uint(report.stuck)
          .Uint(report.refused)
          .Uint(report.saved)
          .Uint(report.not_saved)
          .Uint(report.uploaded)
          .Uint(report.lost)
          .Run());
  return ForgetBeyondMax();
}

Status HostTable::ForgetBeyondMax() {
  return database_
      .Prepare(
          "DELETE FROM host_reports WHERE "
          "(SELECT count(*) FROM host_reports) > ?1 AND host = "
          "(SELECT host FROM host_reports ORDER BY seen_s, host LIMIT 1)")
      .Uint(hosts_max_)
      .Run();
}

Result<ListPage<HostRow>> HostTable::Hosts(const HostQuery& query,
                                           int64_t now_s) {
  const std::lock_guard lock(mutex_);
  CLEW_ASSIGN_OR_RETURN(
      transaction, Transaction::Begin(database_, Transaction::Kind::kRead));
  const std::string from =
      fmt::format("FROM (SELECT *, {} AS health FROM host_reports) WHERE {}",
                  kHealth, kMatches);
  ListPage<HostRow> page;
  {
    Query count = database_.Prepare("SELECT count(*) " + from);
    BindMatch(count, query, now_s);
    CLEW_ASSIGN_OR_RETURN(counted, count.Next());
    page.total = counted ? NumberAt(count, 0) : 0;
    Query rows = database_.Prepare(
        fmt::format("SELECT host, seen_s, version, state, source, "
                    "source_error, units_error, last_error, last_error_s, "
                    "uptime_s, spool_bundles, spool_bytes, spool_bytes_max, "
                    "stuck, refused, saved, not_saved, uploaded, lost, health "
                    "{} ORDER BY health DESC, seen_s DESC, host "
                    "LIMIT ?4 OFFSET ?5",
                    from));
    BindMatch(rows, query, now_s);
    rows.Uint(std::min(query.limit, kPageRowsMax)).Uint(query.offset);
    while (true) {
      CLEW_ASSIGN_OR_RETURN(found, rows.Next());
      if (!found) {
        break;
      }
      page.rows.push_back(RowAt(rows));
    }
  }
  CLEW_RETURN_IF_ERROR(transaction.Commit());
  return page;
}

Result<HostCounts> HostTable::Counts(int64_t now_s) {
  const std::lock_guard lock(mutex_);
  Query query = database_.Prepare(fmt::format(
      "SELECT {} AS health, count(*) FROM host_reports GROUP BY health",
      kHealth));
  query.Int(now_s - kSilentAfter_s);
  HostCounts counts;
  while (true) {
    CLEW_ASSIGN_OR_RETURN(found, query.Next());
    if (!found) {
      return counts;
    }
    counts.by_health[static_cast<size_t>(query.IntAt(0))] = NumberAt(query, 1);
  }
}

}  // namespace clew::collector
