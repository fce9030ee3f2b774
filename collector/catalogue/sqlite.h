#ifndef CLEW_COLLECTOR_CATALOGUE_SQLITE_H_
#define CLEW_COLLECTOR_CATALOGUE_SQLITE_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

// SQLite; nothing of its own crosses this header. A failure names the file. It
// is kCorruptInput where the file is damaged or no database, else kSystem.

namespace clew::collector {

struct SqliteConnection;
struct SqliteStatement;

// One run of a statement. Parameters are bound in order; the first failure of
// anything is what Next or Run returns. Columns count from 0.
class Query {
 public:
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;
  ~Query();

  Query& Int(int64_t value);
  // As the largest that SQLite has, 2^63 - 1, where it is larger.
  Query& Uint(uint64_t value);
  Query& Real(double value);
  Query& Text(std::string_view value);
  Query& Blob(std::span<const std::byte> value);
  Query& Null();

  // True: there is a row to read.
  [[nodiscard]] Result<bool> Next();
  // To its end, which has no rows to read.
  [[nodiscard]] Status Run();

  // REQUIRES: the last Next returned true.
  int64_t IntAt(int column) const;
  double RealAt(int column) const;
  std::string TextAt(int column) const;
  // Until the next call on this object.
  std::span<const std::byte> BlobAt(int column) const;
  bool IsNullAt(int column) const;

 private:
  friend class Database;
  Query(SqliteConnection& connection, SqliteStatement* statement, int failure);

  void Bound(int code);

  SqliteConnection& connection_;
  SqliteStatement* const statement_;  // nullptr: could not be prepared
  int failure_;
  int next_parameter_ = 1;
};

// A connection to a database file. Not thread-safe. Moves.
class Database {
 public:
  enum class Mode : uint8_t { kReadWriteCreate, kRead };
  [[nodiscard]] static Result<Database> Open(const std::string& path,
                                             Mode mode);
  Database(Database&& other) noexcept;
  Database& operator=(Database&& other) noexcept;
  ~Database();

  // Prepared once for each `sql`, which is a constant of the program or put
  // together from such; values from outside are bound. REQUIRES: no other Query
  // of the same text is alive.
  Query Prepare(std::string_view sql);
  // Statements without parameters, separated by ";".
  [[nodiscard]] Status Execute(const std::string& sql);
  int64_t changes() const;  // rows that the last statement changed

 private:
  explicit Database(std::unique_ptr<SqliteConnection> connection);
  std::unique_ptr<SqliteConnection> connection_;
};

// Takes everything back unless Commit succeeded.
class Transaction {
 public:
  enum class Kind : uint8_t { kWrite, kRead };
  // `database` must outlive it.
  [[nodiscard]] static Result<Transaction> Begin(Database& database, Kind kind);
  Transaction(Transaction&& other) noexcept;
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  [[nodiscard]] Status Commit();

 private:
  explicit Transaction(Database& database) : database_(&database) {}
  Database* database_;  // nullptr: done
};

// Connections for readers, at most kMax of them. Thread-safe.
class ReaderPool {
 public:
  static constexpr size_t kMax = 8;
  explicit ReaderPool(std::string path) : path_(std::move(path)) {}

  // Goes back to the pool when destroyed.
  class Lease {
   public:
    Lease(Lease&& other) noexcept = default;
    Lease& operator=(Lease&&) = delete;
    ~Lease();
    Database& database() { return *database_; }

   private:
    friend class ReaderPool;
    Lease(ReaderPool& pool, std::unique_ptr<Database> database)
        : pool_(pool), database_(std::move(database)) {}
    ReaderPool& pool_;
    std::unique_ptr<Database> database_;
  };

  // Waits where all are out. The pool must outlive the lease.
  [[nodiscard]] Result<Lease> Take();

 private:
  const std::string path_;
  std::mutex mutex_;
  std::condition_variable returned_;
  std::vector<std::unique_ptr<Database>> idle_;
  size_t out_ = 0;
};

}  // namespace clew::collector

#endif  // CLEW_COLLECTOR_CATALOGUE_SQLITE_H_
