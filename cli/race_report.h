#ifndef CLEW_CLI_RACE_REPORT_H_
#define CLEW_CLI_RACE_REPORT_H_

#include <string>
#include <vector>

#include "follower/bundle/bundle_recording.h"
#include "solver/races.h"

namespace clew::cli {

// An access, with the names that the images in the bundle give it.
struct NamedAccess {
  solver::RaceAccess access;
  std::string function = {};  // empty: not known
  std::string file = {};      // source; empty: not known
  int line = 0;
  std::string module = {};
  uint64_t offset = 0;        // of the instruction, as in BacktraceFrame
  std::string variable = {};  // what has the address; empty: not known
};

// Names are left out where images cannot be read. Where source lines of some
// races are known, the others are left out: those of libraries' insides.
std::vector<std::vector<NamedAccess>> NameRaces(
    const follower::BundleRecording& recording,
    const std::vector<solver::Race>& races);

// "writes 110 to balance", without who and where.
std::string Describe(const NamedAccess& access);

}  // namespace clew::cli

#endif  // CLEW_CLI_RACE_REPORT_H_
