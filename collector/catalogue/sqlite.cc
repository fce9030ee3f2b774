#include "collector/catalogue/sqlite.h"

#include <sqlite3.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <utility>

#include "common/check.h"

namespace clew::collector {
namespace {

// Only a person with sqlite3 may have the file open as well.
constexpr int kBusyTimeout_ms = 5000;
// A value of a stranger is at most a backtrace (kBacktracesBytesMax).
constexpr int kValueBytesMax = 32 << 20;

bool IsDamage(int code) {
  const int primary = code & 0xff;
  return primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB;
}

}  // namespace

struct SqliteStatement {
  sqlite3_stmt* handle = nullptr;
  bool in_use = false;
};

struct SqliteConnection {
  explicit SqliteConnection(std::string file) : path(std::move(file)) {}
  SqliteConnection(const SqliteConnection&) = delete;
  SqliteConnection& operator=(const SqliteConnection&) = delete;
  ~SqliteConnection() {
    for (auto& [sql, statement] : statements) {
      sqlite3_finalize(statement.handle);
    }
    (void)sqlite3_close(handle);  // SQLITE_OK: every statement is finalised
  }

  std::unexpected<Error> Failure(int code) const {
    const char* text = handle != nullptr && sqlite3_errcode(handle) != SQLITE_OK
                           ? sqlite3_errmsg(handle)
                           : sqlite3_errstr(code);
    if (IsDamage(code)) {
      return CorruptInput("{}: {}", path, text);
    }
    const int sys_errno = handle == nullptr ? 0 : sqlite3_system_errno(handle);
    if (sys_errno != 0) {
      return SystemError(sys_errno, fmt::format("{}: {}", path, text));
    }
    return std::unexpected(
        Error{ErrorCode::kSystem, fmt::format("{}: {}", path, text)});
  }

  const std::string path;
  sqlite3* handle = nullptr;
  std::map<std::string, SqliteStatement, std::less<>> statements;
};

Query::Query(SqliteConnection& connection, SqliteStatement* statement,
             int failure)
    : connection_(connection), statement_(statement), failure_(failure) {
  if (statement_ != nullptr) {
    statement_->in_use = true;
  }
}

Query::~Query() {
  if (statement_ != nullptr) {
    (void)sqlite3_reset(statement_->handle);  // the code that Next returned
    (void)sqlite3_clear_bindings(statement_->handle);
    statement_->in_use = false;
  }
}

void Query::Bound(int code) {
  ++next_parameter_;
  if (failure_ == SQLITE_OK) {
    failure_ = code;
  }
}

Query& Query::Uint(uint64_t value) {
  constexpr auto kMax = std::numeric_limits<int64_t>::max();
  return Int(static_cast<int64_t>(std::min<uint64_t>(value, kMax)));
}

Query& Query::Int(int64_t value) {
  if (statement_ != nullptr) {
    Bound(sqlite3_bind_int64(statement_->handle, next_parameter_, value));
  }
  return *this;
}

Query& Query::Real(double value) {
  if (statement_ != nullptr) {
    Bound(sqlite3_bind_double(statement_->handle, next_parameter_, value));
  }
  return *this;
}

Query& Query::Text(std::string_view value) {
  if (statement_ != nullptr) {
    // A view of nothing may have no address, which would bind NULL.
    const char* text = value.empty() ? "" : value.data();
    Bound(sqlite3_bind_text64(statement_->handle, next_parameter_, text,
                              value.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
  }
  return *this;
}

Query& Query::Blob(std::span<const std::byte> value) {
  if (statement_ != nullptr) {
    Bound(sqlite3_bind_blob64(statement_->handle, next_parameter_, value.data(),
                              value.size(), SQLITE_TRANSIENT));
  }
  return *this;
}

Query& Query::Null() {
  if (statement_ != nullptr) {
    Bound(sqlite3_bind_null(statement_->handle, next_parameter_));
  }
  return *this;
}

Result<bool> Query::Next() {
  if (failure_ == SQLITE_OK) {
    const int code = sqlite3_step(statement_->handle);
    if (code == SQLITE_ROW || code == SQLITE_DONE) {
      return code == SQLITE_ROW;
    }
    failure_ = code;
  }
  return connection_.Failure(failure_);
}

Status Query::Run() {
  CLEW_ASSIGN_OR_RETURN(row, Next());
  CLEW_CHECK(!row, "a statement without results has one");
  return {};
}

int64_t Query::IntAt(int column) const {
  return sqlite3_column_int64(statement_->handle, column);
}

double Query::RealAt(int column) const {
  return sqlite3_column_double(statement_->handle, column);
}

std::string Query::TextAt(int column) const {
  const std::span<const std::byte> bytes = BlobAt(column);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<const std::byte> Query::BlobAt(int column) const {
  const void* data = sqlite3_column_blob(statement_->handle, column);
  const int size = sqlite3_column_bytes(statement_->handle, column);
  return {static_cast<const std::byte*>(data),
          data == nullptr ? 0 : static_cast<size_t>(size)};
}

bool Query::IsNullAt(int column) const {
  return sqlite3_column_type(statement_->handle, column) == SQLITE_NULL;
}

Database::Database(std::unique_ptr<SqliteConnection> connection)
    : connection_(std::move(connection)) {}
Database::Database(Database&& other) noexcept = default;
Database& Database::operator=(Database&& other) noexcept = default;
Database::~Database() = default;

Result<Database> Database::Open(const std::string& path, Mode mode) {
  auto connection = std::make_unique<SqliteConnection>(path);
  const int flags = mode == Mode::kRead
                        ? SQLITE_OPEN_READONLY
                        : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  // A connection is used by one thread at a time, so SQLite need not lock it.
  const int code =
      sqlite3_open_v2(path.c_str(), &connection->handle,
                      flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
                      /*zVfs=*/nullptr);
  if (code != SQLITE_OK) {
    return connection->Failure(code);
  }
  (void)sqlite3_busy_timeout(connection->handle, kBusyTimeout_ms);
  (void)sqlite3_limit(connection->handle, SQLITE_LIMIT_LENGTH, kValueBytesMax);
  // The file may have been written by somebody else: no SQL of its schema runs.
  (void)sqlite3_db_config(connection->handle, SQLITE_DBCONFIG_DEFENSIVE, 1,
                          nullptr);
  (void)sqlite3_db_config(connection->handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0,
                          nullptr);
  return Database(std::move(connection));
}

Query Database::Prepare(std::string_view sql) {
  auto& statements = connection_->statements;
  auto found = statements.find(sql);
  if (found == statements.end()) {
    SqliteStatement statement;
    const int code = sqlite3_prepare_v3(
        connection_->handle, sql.data(), static_cast<int>(sql.size()),
        SQLITE_PREPARE_PERSISTENT, &statement.handle, /*pzTail=*/nullptr);
    if (code != SQLITE_OK) {
      return Query(*connection_, nullptr, code);
    }
    found = statements.emplace(std::string(sql), statement).first;
  }
  CLEW_CHECK(!found->second.in_use, "nested: {}", sql);
  return Query(*connection_, &found->second, SQLITE_OK);
}

Status Database::Execute(const std::string& sql) {
  const int code = sqlite3_exec(connection_->handle, sql.c_str(),
                                /*callback=*/nullptr, /*arg=*/nullptr,
                                /*errmsg=*/nullptr);
  if (code != SQLITE_OK) {
    return connection_->Failure(code);
  }
  return {};
}

int64_t Database::changes() const {
  return sqlite3_changes64(connection_->handle);
}

Result<Transaction> Transaction::Begin(Database& database, Kind kind) {
  CLEW_RETURN_IF_ERROR(
      database.Prepare(kind == Kind::kWrite ? "BEGIN IMMEDIATE" : "BEGIN")
          .Run());
  return Transaction(database);
}

Transaction::Transaction(Transaction&& other) noexcept
    : database_(std::exchange(other.database_, nullptr)) {}

Transaction::~Transaction() {
  if (database_ != nullptr) {
    // Fails where SQLite has already rolled back by itself, which is as well.
    (void)database_->Prepare("ROLLBACK").Run();
  }
}

Status Transaction::Commit() {
  CLEW_RETURN_IF_ERROR(database_->Prepare("COMMIT").Run());
  database_ = nullptr;
  return {};
}

Result<ReaderPool::Lease> ReaderPool::Take() {
  std::unique_lock lock(mutex_);
  returned_.wait(lock, [&] { return out_ < kMax; });
  if (!idle_.empty()) {
    auto database = std::move(idle_.back());
    idle_.pop_back();
    ++out_;
    return Lease(*this, std::move(database));
  }
  CLEW_ASSIGN_OR_RETURN(database, Database::Open(path_, Database::Mode::kRead));
  ++out_;
  return Lease(*this, std::make_unique<Database>(std::move(database)));
}

ReaderPool::Lease::~Lease() {
  if (database_ == nullptr) {
    return;
  }
  {
    const std::lock_guard lock(pool_.mutex_);
    pool_.idle_.push_back(std::move(database_));
    --pool_.out_;
  }
  pool_.returned_.notify_one();
}

}  // namespace clew::collector
