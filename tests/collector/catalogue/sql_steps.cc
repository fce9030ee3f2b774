#include "tests/collector/catalogue/sql_steps.h"

#include <sqlite3.h>

#include <atomic>

#include "common/check.h"

namespace clew::collector {
namespace {

std::atomic<uint64_t> steps = 0;

// Called when a statement has come to its end.
int CountStatement(unsigned, void*, void* statement, void*) {
  const int count =
      sqlite3_stmt_status(static_cast<sqlite3_stmt*>(statement),
                          SQLITE_STMTSTATUS_VM_STEP, /*resetFlg=*/1);
  steps += static_cast<uint64_t>(count);
  return 0;
}

int CountConnection(sqlite3* connection, char**, const sqlite3_api_routines*) {
  return sqlite3_trace_v2(connection, SQLITE_TRACE_PROFILE, &CountStatement,
                          /*pCtx=*/nullptr);
}

// As SQLite wants to have it.
void (*const kForEachConnection)() =
    reinterpret_cast<void (*)()>(&CountConnection);

}  // namespace

SqlSteps::SqlSteps() {
  CLEW_CHECK(sqlite3_auto_extension(kForEachConnection) == SQLITE_OK,
             "SQLite takes no extension");
  (void)Take();
}

SqlSteps::~SqlSteps() {
  (void)sqlite3_cancel_auto_extension(kForEachConnection);
}

uint64_t SqlSteps::Take() { return steps.exchange(0); }

}  // namespace clew::collector
