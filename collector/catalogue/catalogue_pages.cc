// What a catalogue tells: pages, rows, counts.
#include <algorithm>
#include <utility>

#include "collector/catalogue/catalogue_filter.h"
#include "collector/catalogue/sqlite_catalogue.h"
#include "collector/catalogue/text.h"

namespace clew::collector {
namespace {

constexpr std::string_view kBundleColumns =
    "SELECT id, host, unit, command, source, failure, recorded_at_s, "
    "received_at_s, size_bytes, sufficiency, state, signature, grade, why, "
    "solve_seconds, program, version FROM bundles";
constexpr std::string_view kGroupColumns =
    "SELECT signature, title, bundles, host_count, first_seen_s, last_seen_s, "
    "state, why, representative, program, "
    "ifnull((SELECT version FROM group_versions AS v WHERE "
    "v.signature = groups.signature ORDER BY rank LIMIT 1), ''), "
    "ifnull((SELECT version FROM group_versions AS v WHERE "
    "v.signature = groups.signature ORDER BY rank DESC LIMIT 1), ''), "
    "(SELECT count(*) FROM group_versions AS v WHERE "
    "v.signature = groups.signature), "
    "ifnull(resolved, 0), ifnull(resolved_in, ''), ifnull(reopened_in, ''), "
    "ifnull(note, ''), ifnull(by, ''), ifnull(at_s, 0) "
    "FROM groups LEFT JOIN marks USING(signature)";
Result<BundleId> IdAt(const Query& query, int column) {
  const auto bytes = query.BlobAt(column);
  if (bytes.size() != Sha256::kBytes) {
    return CorruptInput("catalogue: an id of {} bytes, not {}", bytes.size(),
                        Sha256::kBytes);
  }
  return BundleId(bytes);
}

Result<BundleState> StateAt(const Query& query, int column) {
  const int64_t value = query.IntAt(column);
  if (value < 0 || value >= static_cast<int64_t>(kBundleStates)) {
    return CorruptInput("catalogue: state {}, there are {}", value,
                        kBundleStates);
  }
  return static_cast<BundleState>(value);
}

Result<BundleRow> BundleAt(const Query& query) {
  CLEW_ASSIGN_OR_RETURN(id, IdAt(query, 0));
  CLEW_ASSIGN_OR_RETURN(state, StateAt(query, 10));
  BundleRow row{NewBundle{.id = id,
                          .host = query.TextAt(1),
                          .unit = query.TextAt(2),
                          .command = query.TextAt(3),
                          .source = query.TextAt(4),
                          .failure = query.TextAt(5),
                          .recorded_at_s = query.IntAt(6),
                          .received_at_s = query.IntAt(7),
                          .size_bytes = static_cast<uint64_t>(query.IntAt(8)),
                          .sufficiency = std::nullopt},
                state,
                query.TextAt(11),
                query.TextAt(12),
                query.TextAt(13),
                query.RealAt(14),
                query.TextAt(15),
                query.TextAt(16)};
  if (!query.IsNullAt(9)) {
    row.sufficiency = static_cast<uint32_t>(query.IntAt(9));
  }
  return row;
}

// All but `hosts`.
Result<GroupRow> GroupAt(const Query& query) {
  CLEW_ASSIGN_OR_RETURN(state, StateAt(query, 6));
  GroupRow row{.signature = query.TextAt(0),
               .title = query.TextAt(1),
               .bundles = static_cast<uint64_t>(query.IntAt(2)),
               .hosts = {},
               .host_count = static_cast<uint64_t>(query.IntAt(3)),
               .first_seen_s = query.IntAt(4),
               .last_seen_s = query.IntAt(5),
               .state = state,
               .why = query.TextAt(7),
               .representative = std::nullopt,
               .program = query.TextAt(9),
               .first_version = query.TextAt(10),
               .last_version = query.TextAt(11),
               .versions = static_cast<uint64_t>(query.IntAt(12)),
               .mark = {.resolved = query.IntAt(13) != 0,
                        .resolved_in = query.TextAt(14),
                        .reopened_in = query.TextAt(15),
                        .note = query.TextAt(16),
                        .by = query.TextAt(17),
                        .at_s = query.IntAt(18)}};
  if (!query.IsNullAt(8)) {
    CLEW_ASSIGN_OR_RETURN(id, IdAt(query, 8));
    row.representative = id;
  }
  return row;
}

// Rows of a query, each made by `read`.
template <class Row>
Status ReadRows(Query& query, Result<Row> (*read)(const Query&),
                std::vector<Row>& rows) {
  while (true) {
    CLEW_ASSIGN_OR_RETURN(found, query.Next());
    if (!found) {
      return {};
    }
    CLEW_ASSIGN_OR_RETURN(row, read(query));
    rows.push_back(std::move(row));
  }
}

Status AddHosts(Database& database, GroupRow& row) {
  Query query = database.Prepare(
      "SELECT DISTINCT host FROM places WHERE signature = ? "
      "ORDER BY host LIMIT ?");
  query.Text(row.signature).Int(kGroupHostsMax);
  return ReadRows<std::string>(
      query, [](const Query& at) { return Result<std::string>(at.TextAt(0)); },
      row.hosts);
}

int64_t Offset(uint64_t offset) {
  return static_cast<int64_t>(std::min<uint64_t>(offset, INT64_MAX));
}
int64_t Limit(uint64_t limit) {
  return static_cast<int64_t>(std::min(limit, kPageRowsMax));
}

Result<uint64_t> CountOf(Query& query) {
  CLEW_ASSIGN_OR_RETURN(found, query.Next());
  return found ? static_cast<uint64_t>(query.IntAt(0)) : 0;
}

Result<uint64_t> CountOf(Database& database, std::string_view sql) {
  Query query = database.Prepare(sql);
  return CountOf(query);
}

Status CountGroups(Database& database, CatalogueCounts& counts) {
  counts.groups_by_state.resize(kBundleStates);
  Query query =
      database.Prepare("SELECT state, count(*) FROM groups GROUP BY state");
  while (true) {
    CLEW_ASSIGN_OR_RETURN(found, query.Next());
    if (!found) {
      return {};
    }
    CLEW_ASSIGN_OR_RETURN(state, StateAt(query, 0));
    const auto count = static_cast<uint64_t>(query.IntAt(1));
    counts.groups_by_state[static_cast<size_t>(state)] = count;
    counts.groups += count;
  }
}

// nullopt: no such.
Result<std::optional<GroupRow>> ReadGroup(Database& database,
                                          const std::string& signature) {
  std::vector<GroupRow> rows;
  {
    Query query =
        database.Prepare(fmt::format("{} WHERE signature = ?", kGroupColumns));
    query.Text(signature);
    CLEW_RETURN_IF_ERROR(ReadRows(query, &GroupAt, rows));
  }
  for (GroupRow& row : rows) {
    CLEW_RETURN_IF_ERROR(AddHosts(database, row));
  }
  return rows.empty() ? std::nullopt : std::optional(std::move(rows[0]));
}

// The signatures of a page, and how many match in all.
Result<ListPage<std::string>> FindGroups(Database& database,
                                         const GroupQuery& query) {
  const Where where = WhereOf(query);
  const bool marked = query.resolved || query.reopened;
  Query found = database.Prepare(fmt::format(
      "SELECT groups.signature FROM groups INDEXED BY groups_to_find{}{} "
      "ORDER BY last_seen_s DESC, groups.signature",
      marked ? " LEFT JOIN marks ON marks.signature = groups.signature" : "",
      where.sql()));
  where.Bind(found);
  const uint64_t limit = std::min(query.limit, kPageRowsMax);
  ListPage<std::string> page;
  for (;; ++page.total) {
    CLEW_ASSIGN_OR_RETURN(more, found.Next());
    if (!more) {
      return page;
    }
    if (page.total >= query.offset && page.rows.size() < limit) {
      page.rows.push_back(found.TextAt(0));
    }
  }
}

}  // namespace

// Those that match are found once, in order, by an index that has all that is
// looked at; only the rows of the page are read.
Result<ListPage<GroupRow>> SqliteCatalogue::Groups(
    const GroupQuery& query) const {
  CLEW_ASSIGN_OR_RETURN(lease, readers_.Take());
  Database& database = lease.database();
  CLEW_ASSIGN_OR_RETURN(transaction,
                        Transaction::Begin(database, Transaction::Kind::kRead));
  CLEW_ASSIGN_OR_RETURN(found, FindGroups(database, query));
  ListPage<GroupRow> page{.rows = {}, .total = found.total};
  for (const std::string& signature : found.rows) {
    CLEW_ASSIGN_OR_RETURN(row, ReadGroup(database, signature));
    if (row) {
      page.rows.push_back(std::move(*row));
    }
  }
  CLEW_RETURN_IF_ERROR(transaction.Commit());
  return page;
}

Result<ListPage<BundleRow>> SqliteCatalogue::Bundles(
    const BundleQuery& query) const {
  CLEW_ASSIGN_OR_RETURN(lease, readers_.Take());
  Database& database = lease.database();
  CLEW_ASSIGN_OR_RETURN(transaction,
                        Transaction::Begin(database, Transaction::Kind::kRead));
  const Where where = WhereOf(query);
  ListPage<BundleRow> page;
  {
    Query count =
        database.Prepare("SELECT count(*) FROM bundles" + where.sql());
    Query rows = database.Prepare(
        fmt::format("{}{} ORDER BY received_at_s DESC, id LIMIT ? OFFSET ?",
                    kBundleColumns, where.sql()));
    where.Bind(count);
    where.Bind(rows);
    rows.Int(Limit(query.limit)).Int(Offset(query.offset));
    CLEW_ASSIGN_OR_RETURN(total, CountOf(count));
    page.total = total;
    CLEW_RETURN_IF_ERROR(ReadRows(rows, &BundleAt, page.rows));
  }
  CLEW_RETURN_IF_ERROR(transaction.Commit());
  return page;
}

Result<std::optional<GroupRow>> SqliteCatalogue::Group(
    const std::string& signature) const {
  CLEW_ASSIGN_OR_RETURN(lease, readers_.Take());
  Database& database = lease.database();
  CLEW_ASSIGN_OR_RETURN(transaction,
                        Transaction::Begin(database, Transaction::Kind::kRead));
  CLEW_ASSIGN_OR_RETURN(row, ReadGroup(database, signature));
  CLEW_RETURN_IF_ERROR(transaction.Commit());
  return std::move(row);
}

Result<std::optional<BundleRow>> SqliteCatalogue::Bundle(
    const BundleId& id) const {
  CLEW_ASSIGN_OR_RETURN(lease, readers_.Take());
  Query query =
      lease.database().Prepare(fmt::format("{} WHERE id = ?", kBundleColumns));
  query.Blob(id.bytes());
  std::vector<BundleRow> rows;
  CLEW_RETURN_IF_ERROR(ReadRows(query, &BundleAt, rows));
  return rows.empty() ? std::nullopt : std::optional(std::move(rows[0]));
}

Result<std::optional<Analysis>> SqliteCatalogue::AnalysisOf(
    const BundleId& id) const {
  CLEW_ASSIGN_OR_RETURN(lease, readers_.Take());
  Query query = lease.database().Prepare(
      "SELECT signature, title, backtraces FROM analyses "
      "JOIN bundles USING(id) WHERE id = ?");
  query.Blob(id.bytes());
  CLEW_ASSIGN_OR_RETURN(found, query.Next());
  if (!found) {
    return std::nullopt;
  }
  return Analysis{.signature = query.TextAt(0),
                  .title = query.TextAt(1),
                  .backtraces = query.TextAt(2)};
}

Result<CatalogueCounts> SqliteCatalogue::Counts() const {
  CLEW_ASSIGN_OR_RETURN(lease, readers_.Take());
  Database& database = lease.database();
  CLEW_ASSIGN_OR_RETURN(transaction,
                        Transaction::Begin(database, Transaction::Kind::kRead));
  CatalogueCounts counts;
  counts.by_state.resize(kBundleStates);
  {
    Query query = database.Prepare(
        "SELECT state, count(*), total(size_bytes) FROM bundles "
        "GROUP BY state");
    while (true) {
      CLEW_ASSIGN_OR_RETURN(found, query.Next());
      if (!found) {
        break;
      }
      CLEW_ASSIGN_OR_RETURN(state, StateAt(query, 0));
      const auto count = static_cast<uint64_t>(query.IntAt(1));
      counts.by_state[static_cast<size_t>(state)] = count;
      counts.bundles += count;
      // total() is a double, which no sum of strangers' sizes overflows.
      counts.bytes += static_cast<uint64_t>(std::min(query.RealAt(2), 1e18));
    }
  }
  CLEW_RETURN_IF_ERROR(CountGroups(database, counts));
  CLEW_ASSIGN_OR_RETURN(
      hosts, CountOf(database, "SELECT count(DISTINCT host) FROM bundles"));
  counts.hosts = hosts;
  CLEW_RETURN_IF_ERROR(transaction.Commit());
  return counts;
}

}  // namespace clew::collector
