#ifndef CLEW_CLI_RACE_REPORT_H_
#define CLEW_CLI_RACE_REPORT_H_

#include <string>
#include <vector>

#include "cli/report.h"
#include "common/result.h"
#include "common/schedule.h"
#include "follower/bundle/bundle_recording.h"
#include "solver/races.h"

namespace clew::cli {

// A place in the code, with the names that the images in the bundle give it.
struct NamedPlace {
  std::string function = {};  // empty: not known
  std::string file = {};      // source; empty: not known
  int line = 0;
  std::string module = {};  // empty: no image is there
  uint64_t offset = 0;      // of the instruction, as in BacktraceFrame
};

// An access. Where a library or the kernel made it for the program, the place
// is that of the program's call.
struct NamedAccess {
  solver::RaceAccess access;
  NamedPlace place;
  std::string within = {};    // the library's function; empty: the program's
  std::string variable = {};  // what has the address; empty: not known
};

struct NamedRace {
  bool internal = false;
  bool under_locks = false;
  std::vector<NamedAccess> accesses;
};

struct NamedLock {
  uint64_t addr = 0;
  std::string variable = {};
  bool shared = false;
  NamedPlace place;  // where it was taken
};

struct NamedWait {
  solver::WaitingThread waiting;
  std::string variable = {};  // what it waits for
  NamedPlace place;
  std::vector<NamedLock> held;
};

// What a witness shows.
struct Findings {
  std::vector<NamedRace> races;  // best first
  // Of a hang, or where there is a cycle, whose threads come first.
  std::vector<NamedWait> waits;
};

bool HasCycle(const Findings& findings);

// Runs a witness of the recording. Names are left out where images cannot be
// read. Fails as FindRaces does.
[[nodiscard]] Result<Findings> FindingsOf(
    const follower::BundleRecording& recording, const Schedule& schedule);

// "races" and "waits".
void AddTo(Json& json, const Findings& findings);
// For people: the cycle. Without one, who waits, of a hang; and the race that
// comes first, unless that is none of the program's.
void PrintFindings(const Findings& findings);

}  // namespace clew::cli

#endif  // CLEW_CLI_RACE_REPORT_H_
