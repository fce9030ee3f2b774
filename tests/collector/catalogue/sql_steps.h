#ifndef CLEW_TESTS_COLLECTOR_CATALOGUE_SQL_STEPS_H_
#define CLEW_TESTS_COLLECTOR_CATALOGUE_SQL_STEPS_H_

#include <cstdint>

namespace clew::collector {

// Counts what SQLite does for this process in steps of its machine, which are
// the same on every computer, however busy it is.
//
// Source: sqlite3.h, SQLITE_STMTSTATUS_VM_STEP.
class SqlSteps {
 public:
  // Of connections that are opened while it lives. REQUIRES: no other one
  // lives.
  SqlSteps();
  SqlSteps(const SqlSteps&) = delete;
  SqlSteps& operator=(const SqlSteps&) = delete;
  ~SqlSteps();

  // Of statements that came to their end since the last call.
  static uint64_t Take();
};

}  // namespace clew::collector

#endif  // CLEW_TESTS_COLLECTOR_CATALOGUE_SQL_STEPS_H_
