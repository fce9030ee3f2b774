#ifndef CLEW_CLI_HOST_SOFTWARE_SELFTEST_H_
#define CLEW_CLI_HOST_SOFTWARE_SELFTEST_H_

#include <functional>
#include <string>
#include <vector>

#include "cli/run_program.h"
#include "recorder/perf/selftest.h"

namespace clew::cli {

struct SelfTestFiles {
  std::string clew;    // the program that is tested
  std::string race;    // a program that fails in some of its interleavings
  std::string folder;  // for the bundle, "<folder>/race.clew"
};

// Goes the way of every bundle, from a failure on this host's CPU to its
// replay, with the commands that a user would type. Always all of these steps,
// in this order, each told as it ends:
//
//   software record   `clew record --source tracer` until the race is lost
//   software decode   the trace has no gap
//   software solve    an interleaving is found that ends as the recorded one
//   software replay   five replays end so
//
// Takes a second or two. `run` runs the commands.
std::vector<recorder::perf::SelfTestStep> TestSoftware(
    const RunFunction& run, const SelfTestFiles& files,
    const std::function<void(const recorder::perf::SelfTestStep&)>& tell);

}  // namespace clew::cli

#endif  // CLEW_CLI_HOST_SOFTWARE_SELFTEST_H_
