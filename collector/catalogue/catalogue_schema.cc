#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collector/catalogue/sqlite_catalogue.h"

namespace clew::collector {
namespace {

constexpr int kApplicationId = 0x636c6577;  // "clew"

// A bundle's `progress` orders states: see ProgressOf. `fit` is its
// sufficiency, 0 where there is none. `seen_s` is the time that its group goes
// by. `signature` is empty until it was analysed; from then on `places` and
// `groups` count it. A group's row is made of these by RefreshGroup, so that a
// page need not; `to_solve` is the bundle that TakeForSolving would give.
constexpr std::string_view kVersion1[] = {
    ("CREATE TABLE bundles("
     "id BLOB PRIMARY KEY, host TEXT NOT NULL, unit TEXT NOT NULL, "
     "command TEXT NOT NULL, source TEXT NOT NULL, failure TEXT NOT NULL, "
     "recorded_at_s INTEGER NOT NULL, received_at_s INTEGER NOT NULL, "
     "seen_s INTEGER NOT NULL, size_bytes INTEGER NOT NULL, "
     "sufficiency INTEGER, fit INTEGER NOT NULL, "
     "state INTEGER NOT NULL DEFAULT 0, progress INTEGER NOT NULL DEFAULT 0, "
     "attempts INTEGER NOT NULL DEFAULT 0, "
     "signature TEXT NOT NULL DEFAULT '', grade TEXT NOT NULL DEFAULT '', "
     "why TEXT NOT NULL DEFAULT '', "
     "solve_seconds REAL NOT NULL DEFAULT 0) STRICT"),
    "CREATE INDEX bundles_by_time ON bundles(received_at_s DESC, id)",
    "CREATE INDEX bundles_by_host ON bundles(host, received_at_s DESC, id)",
    ("CREATE INDEX bundles_by_state "
     "ON bundles(state, received_at_s DESC, id, size_bytes)"),
    ("CREATE INDEX bundles_by_group "
     "ON bundles(signature, received_at_s DESC, id)"),
    ("CREATE INDEX bundles_by_progress ON bundles("
     "signature, progress DESC, fit DESC, received_at_s DESC, id)"),
    ("CREATE INDEX bundles_to_analyse ON bundles(received_at_s, id) "
     "WHERE state = 0 AND signature = ''"),
    ("CREATE TABLE analyses("
     "id BLOB PRIMARY KEY, title TEXT NOT NULL, "
     "backtraces TEXT NOT NULL) STRICT"),
    ("CREATE TABLE places("
     "signature TEXT NOT NULL, host TEXT NOT NULL, unit TEXT NOT NULL, "
     "bundles INTEGER NOT NULL, "
     "PRIMARY KEY(signature, host, unit)) STRICT, WITHOUT ROWID"),
    ("CREATE TABLE groups("
     "signature TEXT PRIMARY KEY, title TEXT NOT NULL, "
     "bundles INTEGER NOT NULL, host_count INTEGER NOT NULL, "
     "first_seen_s INTEGER NOT NULL, last_seen_s INTEGER NOT NULL, "
     "state INTEGER NOT NULL, why TEXT NOT NULL, representative BLOB, "
     "to_solve BLOB) STRICT, WITHOUT ROWID"),
    "CREATE INDEX groups_by_time ON groups(last_seen_s DESC, signature)",
    ("CREATE INDEX groups_to_solve ON groups(last_seen_s DESC, signature, "
     "to_solve) WHERE to_solve IS NOT NULL"),
};

// A job that the system made fail is not taken again before `not_before_s`.
constexpr std::string_view kVersion2[] = {
    "ALTER TABLE bundles ADD COLUMN not_before_s INTEGER NOT NULL DEFAULT 0",
};

// `notifications` wait to be sent. `notification_limit` has one row: how many
// may wait (0: no webhook is configured), and how many had no room.
// `host_reports` has the last report of each host.
constexpr std::string_view kVersion3[] = {
    ("CREATE TABLE notifications("
     "number INTEGER PRIMARY KEY, kind INTEGER NOT NULL, "
     "signature TEXT NOT NULL, title TEXT NOT NULL, bundle BLOB NOT NULL, "
     "command TEXT NOT NULL, version TEXT NOT NULL, failure TEXT NOT NULL, "
     "host TEXT NOT NULL, unit TEXT NOT NULL, bundles INTEGER NOT NULL, "
     "first_seen_s INTEGER NOT NULL, last_seen_s INTEGER NOT NULL, "
     "queued_at_s INTEGER NOT NULL, attempts INTEGER NOT NULL DEFAULT 0, "
     "not_before_s INTEGER NOT NULL DEFAULT 0) STRICT"),
    "CREATE INDEX notifications_by_time ON notifications(not_before_s, number)",
    ("CREATE TABLE notification_limit("
     "id INTEGER PRIMARY KEY CHECK(id = 1), most INTEGER NOT NULL, "
     "dropped INTEGER NOT NULL) STRICT"),
    "INSERT INTO notification_limit VALUES(1, 0, 0)",
    ("CREATE TABLE host_reports("
     "host TEXT PRIMARY KEY, seen_s INTEGER NOT NULL, "
     "version TEXT NOT NULL, state TEXT NOT NULL, source TEXT NOT NULL, "
     "source_error TEXT NOT NULL, units_error TEXT NOT NULL, "
     "last_error TEXT NOT NULL, last_error_s INTEGER NOT NULL, "
     "uptime_s INTEGER NOT NULL, "
     "spool_bundles INTEGER NOT NULL, spool_bytes INTEGER NOT NULL, "
     "spool_bytes_max INTEGER NOT NULL, stuck INTEGER NOT NULL, "
     "refused INTEGER NOT NULL, saved INTEGER NOT NULL, "
     "not_saved INTEGER NOT NULL, uploaded INTEGER NOT NULL, "
     "lost INTEGER NOT NULL) STRICT, WITHOUT ROWID"),
};

// `rules` are those that a group's signature goes by; what was made before they
// were written down has those of version 1, and is analysed anew. `versions`
// ranks the versions of a program as they were seen first. `marks` are of
// engineers; `former_signatures` lead to the groups that took others in.
constexpr std::string_view kVersion4[] = {
    "ALTER TABLE bundles ADD COLUMN program TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE bundles ADD COLUMN version TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE groups ADD COLUMN program TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE groups ADD COLUMN rules INTEGER NOT NULL DEFAULT 1",
    "ALTER TABLE groups ADD COLUMN tries INTEGER NOT NULL DEFAULT 0",
    "CREATE INDEX groups_by_rules ON groups(rules)",
    "CREATE INDEX bundles_by_day ON bundles(signature, seen_s)",
    ("CREATE INDEX bundles_to_filter ON bundles(received_at_s DESC, id, "
     "program, version, unit, failure, host, state, signature)"),
    ("CREATE TABLE versions("
     "program TEXT NOT NULL, version TEXT NOT NULL, rank INTEGER NOT NULL, "
     "PRIMARY KEY(program, version)) STRICT, WITHOUT ROWID"),
    ("CREATE TABLE group_versions("
     "signature TEXT NOT NULL, version TEXT NOT NULL, rank INTEGER NOT NULL, "
     "first_seen_s INTEGER NOT NULL, last_seen_s INTEGER NOT NULL, "
     "PRIMARY KEY(signature, version)) STRICT, WITHOUT ROWID"),
    ("CREATE TABLE marks("
     "signature TEXT PRIMARY KEY, resolved INTEGER NOT NULL DEFAULT 0, "
     "resolved_in TEXT NOT NULL DEFAULT '', boundary INTEGER NOT NULL "
     "DEFAULT 0, reopened_in TEXT NOT NULL DEFAULT '', "
     "note TEXT NOT NULL DEFAULT '', by TEXT NOT NULL DEFAULT '', "
     "at_s INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID"),
    ("CREATE TABLE former_signatures("
     "former TEXT PRIMARY KEY, present TEXT NOT NULL) STRICT, WITHOUT ROWID"),
    ("CREATE TABLE races("
     "id BLOB PRIMARY KEY, races TEXT NOT NULL) STRICT"),
};

// `groups_to_find` has what groups are listed and searched by, in the order of
// a list, so that a search reads it and not the rows.
constexpr std::string_view kVersion5[] = {
    "DROP INDEX groups_by_time",
    ("CREATE INDEX groups_to_find ON groups("
     "last_seen_s DESC, signature, state, title)"),
    "CREATE INDEX groups_by_state ON groups(state)",
};

// When a group was resolved; a note that is left later does not change it.
constexpr std::string_view kVersion6[] = {
    "ALTER TABLE marks ADD COLUMN resolved_at_s INTEGER NOT NULL DEFAULT 0",
    "UPDATE marks SET resolved_at_s = at_s",
};

// What makes version N of version N - 1, in order. What a collector has made
// once is never changed here: a new version goes behind the others.
constexpr std::array<std::span<const std::string_view>, 6> kMigrations = {
    kVersion1, kVersion2, kVersion3, kVersion4, kVersion5, kVersion6};
constexpr auto kVersion = static_cast<int64_t>(kMigrations.size());

// NORMAL: a transaction is whole after a power cut, though the last ones may be
// lost; a bundle is acknowledged once it is in the store, and a row that is
// missing is added again from there.
constexpr std::string_view kSettings =
    "PRAGMA synchronous = NORMAL;"
    "PRAGMA cell_size_check = ON;"
    "PRAGMA temp_store = MEMORY;"
    "PRAGMA cache_size = -4096;"              // KiB
    "PRAGMA journal_size_limit = 16777216;";  // bytes, of the WAL at rest

Status WithRemedy(Status checked) {
  if (checked || checked.error().code != ErrorCode::kCorruptInput) {
    return checked;
  }
  Error error = std::move(checked).error();
  error.message +=
      "; stop the collector and remove it with its -wal and -shm: it is made "
      "again from the stored bundles, but for what engineers said of groups";
  return std::unexpected(std::move(error));
}

Result<int64_t> Setting(Database& database, std::string_view sql) {
  Query query = database.Prepare(sql);
  CLEW_ASSIGN_OR_RETURN(row, query.Next());
  return row ? query.IntAt(0) : 0;
}

Result<bool> IsEmpty(Database& database) {
  CLEW_ASSIGN_OR_RETURN(
      tables, Setting(database, "SELECT count(*) FROM sqlite_schema"));
  CLEW_ASSIGN_OR_RETURN(id, Setting(database, "PRAGMA application_id"));
  return tables == 0 && (id == 0 || id == kApplicationId);
}

// Changes the tables of version `from` to those of the present version, all of
// them or none.
Status Migrate(Database& database, int64_t from) {
  CLEW_ASSIGN_OR_RETURN(
      transaction, Transaction::Begin(database, Transaction::Kind::kWrite));
  for (int64_t version = from; version < kVersion; ++version) {
    for (const auto statement : kMigrations[static_cast<size_t>(version)]) {
      CLEW_RETURN_IF_ERROR(database.Execute(std::string(statement)));
    }
  }
  CLEW_RETURN_IF_ERROR(database.Execute(
      fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {};",
                  kApplicationId, kVersion)));
  return transaction.Commit();
}

Result<int64_t> VersionOf(Database& database, const std::string& path) {
  CLEW_ASSIGN_OR_RETURN(id, Setting(database, "PRAGMA application_id"));
  if (id != kApplicationId) {
    return CorruptInput(
        "{}: a database of another program (id {:#x}, not {:#x})", path, id,
        kApplicationId);
  }
  CLEW_ASSIGN_OR_RETURN(version, Setting(database, "PRAGMA user_version"));
  if (version < 1 || version > kVersion) {
    return CorruptInput(
        "{}: a catalogue of version {}, this program reads 1 to {}", path,
        version, kVersion);
  }
  return version;
}

Result<std::vector<std::string>> SchemaOf(Database& database) {
  Query query = database.Prepare(
      "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid");
  std::vector<std::string> schema;
  while (true) {
    CLEW_ASSIGN_OR_RETURN(row, query.Next());
    if (!row) {
      return schema;
    }
    schema.push_back(query.TextAt(0));
  }
}

// A file of our version with other tables is damaged, or somebody's trap. What
// `version` must have is what its migrations make of an empty database.
Status CheckSchema(Database& database, const std::string& path,
                   int64_t version) {
  CLEW_ASSIGN_OR_RETURN(
      empty, Database::Open(":memory:", Database::Mode::kReadWriteCreate));
  for (int64_t made = 0; made < version; ++made) {
    for (const auto statement : kMigrations[static_cast<size_t>(made)]) {
      CLEW_RETURN_IF_ERROR(empty.Execute(std::string(statement)));
    }
  }
  CLEW_ASSIGN_OR_RETURN(wanted, SchemaOf(empty));
  CLEW_ASSIGN_OR_RETURN(found, SchemaOf(database));
  const auto other = std::ranges::mismatch(found, wanted);
  if (other.in1 != found.end()) {
    return CorruptInput("{}: table or index {} is not that of version {}", path,
                        other.in1 - found.begin(), version);
  }
  if (other.in2 != wanted.end()) {
    return CorruptInput("{}: {} tables and indices, version {} has {}", path,
                        found.size(), version, wanted.size());
  }
  return {};
}

// `pragma` is a quick_check.
Status CheckPages(Database& database, const std::string& path,
                  const std::string& pragma) {
  Query query = database.Prepare(pragma);
  CLEW_ASSIGN_OR_RETURN(row, query.Next());
  const std::string found = row ? query.TextAt(0) : "no answer";
  if (found != "ok") {
    return CorruptInput("{}: damaged: {:?}", path, found);
  }
  return {};
}

Status UseWal(Database& database, const std::string& path) {
  Query query = database.Prepare("PRAGMA journal_mode = WAL");
  CLEW_ASSIGN_OR_RETURN(row, query.Next());
  const std::string mode = row ? query.TextAt(0) : "";
  if (mode != "wal") {
    return std::unexpected(
        Error{ErrorCode::kSystem,
              fmt::format("{}: journal mode is {:?}, needs \"wal\": the file "
                          "system must allow shared memory",
                          path, mode)});
  }
  return {};
}

Result<std::vector<std::string>> TablesOf(Database& database) {
  Query query = database.Prepare(
      "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY rowid");
  std::vector<std::string> tables;
  while (true) {
    CLEW_ASSIGN_OR_RETURN(row, query.Next());
    if (!row) {
      return tables;
    }
    tables.push_back(query.TextAt(0));
  }
}

Status CheckTables(Database& database, const std::string& path,
                   const std::function<bool()>& go_on) {
  CLEW_ASSIGN_OR_RETURN(tables, TablesOf(database));
  for (const std::string& table : tables) {
    if (!go_on()) {
      return {};
    }
    CLEW_RETURN_IF_ERROR(CheckPages(
        database, path, fmt::format("PRAGMA quick_check({})", table)));
  }
  return {};
}

Status CheckAll(Database& database, const std::string& path,
                Catalogue::Check check) {
  CLEW_ASSIGN_OR_RETURN(empty, IsEmpty(database));
  int64_t version = 0;
  if (!empty) {
    CLEW_ASSIGN_OR_RETURN(found, VersionOf(database, path));
    version = found;
  }
  CLEW_RETURN_IF_ERROR(UseWal(database, path));
  CLEW_RETURN_IF_ERROR(database.Execute(std::string(kSettings)));
  CLEW_RETURN_IF_ERROR(CheckSchema(database, path, version));
  if (check == Catalogue::Check::kPages) {
    CLEW_RETURN_IF_ERROR(CheckPages(database, path, "PRAGMA quick_check(1)"));
  }
  return version < kVersion ? Migrate(database, version) : Status();
}

}  // namespace

Status PrepareCatalogue(Database& database, const std::string& path,
                        Catalogue::Check check) {
  return WithRemedy(CheckAll(database, path, check));
}

Status CheckCataloguePages(Database& database, const std::string& path,
                           const std::function<bool()>& go_on) {
  return WithRemedy(CheckTables(database, path, go_on));
}

}  // namespace clew::collector
