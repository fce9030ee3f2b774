// What a catalogue tells: pages, rows, counts.
#include <algorithm>
#include <utility>

#include "collector/sqlite_catalogue.h"
#include "collector/text.h"

namespace clew::collector {
namespace {

constexpr std::string_view kBundleColumns =
    "SELECT id, host, unit, command, source, failure, recorded_at_s, "
    "received_at_s, size_bytes, sufficiency, state, signature, grade, why, "
    "solve_seconds FROM bundles";
constexpr std::string_view kGroupColumns =
    "SELECT signature, title, bundles, host_count, first_seen_s, last_seen_s, "
    "state, why, representative FROM groups";
constexpr std::string_view kGroupMatches =
    " WHERE title LIKE ?1 ESCAPE '\\' OR EXISTS (SELECT 1 FROM places "
    "WHERE places.signature = groups.signature AND "
    "(host LIKE ?1 ESCAPE '\\' OR unit LIKE ?1 ESCAPE '\\'))";

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
                query.RealAt(14)};
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
               .representative = std::nullopt};
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

// The WHERE of a query for bundles, and its parameters.
struct BundleFilter {
  explicit BundleFilter(const BundleQuery& wanted) : query(wanted) {
    Add(!query.signature.empty(), "signature = ?");
    Add(!query.host.empty(), "host = ?");
    Add(query.state.has_value(), "state = ?");
  }
  void Add(bool wanted, std::string_view condition) {
    if (wanted) {
      where += where.empty() ? " WHERE " : " AND ";
      where += condition;
    }
  }
  void Bind(Query& statement) const {
    if (!query.signature.empty()) {
      statement.Text(query.signature);
    }
    if (!query.host.empty()) {
      statement.Text(CleanLine(query.host, kNameBytesMax));
    }
    if (query.state) {
      statement.Int(static_cast<int64_t>(*query.state));
    }
  }
  const BundleQuery& query;
  std::string where;
};

}  // namespace

Result<Page<GroupRow>> SqliteCatalogue::Groups(const GroupQuery& query) const {
  CLEW_ASSIGN_OR_RETURN(lease, readers_.Take());
  Database& database = lease.database();
  CLEW_ASSIGN_OR_RETURN(transaction,
                        Transaction::Begin(database, Transaction::Kind::kRead));
  const std::string where(query.text.empty() ? "" : kGroupMatches);
  const std::string pattern = LikePattern(query.text);
  Page<GroupRow> page;
  {
    Query count = database.Prepare("SELECT count(*) FROM groups" + where);
    Query rows = database.Prepare(
        fmt::format("{}{} ORDER BY last_seen_s DESC, signature "
                    "LIMIT ? OFFSET ?",
                    kGroupColumns, where));
    if (!where.empty()) {
      count.Text(pattern);
      rows.Text(pattern);
    }
    rows.Int(Limit(query.limit)).Int(Offset(query.offset));
    CLEW_ASSIGN_OR_RETURN(total, CountOf(count));
    page.total = total;
    CLEW_RETURN_IF_ERROR(ReadRows(rows, &GroupAt, page.rows));
  }
  for (GroupRow& row : page.rows) {
    CLEW_RETURN_IF_ERROR(AddHosts(database, row));
  }
  CLEW_RETURN_IF_ERROR(transaction.Commit());
  return page;
}

Result<Page<BundleRow>> SqliteCatalogue::Bundles(
    const BundleQuery& query) const {
  CLEW_ASSIGN_OR_RETURN(lease, readers_.Take());
  Database& database = lease.database();
  CLEW_ASSIGN_OR_RETURN(transaction,
                        Transaction::Begin(database, Transaction::Kind::kRead));
  const BundleFilter filter(query);
  Page<BundleRow> page;
  {
    Query count =
        database.Prepare("SELECT count(*) FROM bundles" + filter.where);
    Query rows = database.Prepare(
        fmt::format("{}{} ORDER BY received_at_s DESC, id LIMIT ? OFFSET ?",
                    kBundleColumns, filter.where));
    filter.Bind(count);
    filter.Bind(rows);
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
  CLEW_RETURN_IF_ERROR(transaction.Commit());
  return rows.empty() ? std::nullopt : std::optional(std::move(rows[0]));
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
  CLEW_ASSIGN_OR_RETURN(groups,
                        CountOf(database, "SELECT count(*) FROM groups"));
  CLEW_ASSIGN_OR_RETURN(
      hosts, CountOf(database, "SELECT count(DISTINCT host) FROM bundles"));
  counts.groups = groups;
  counts.hosts = hosts;
  CLEW_RETURN_IF_ERROR(transaction.Commit());
  return counts;
}

}  // namespace clew::collector
