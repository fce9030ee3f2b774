#ifndef CLEW_TESTS_E2E_CLEW_COMMAND_H_
#define CLEW_TESTS_E2E_CLEW_COMMAND_H_

#include <string>
#include <vector>

#include "cli/run_program.h"

// The built program and the built tracees, run as a user would.

namespace clew::e2e {

using cli::ProgramOutput;

inline constexpr int kTimedOut = 124;  // what timeout(1) returns

// No machine is so slow that what ends by itself takes longer.
inline constexpr int kLimitSeconds = 2000;
// For `clew solve` and `clew backtrace`, whose own limits are shorter than what
// a slow machine may need. Before kLimitSeconds: they say how far they got.
inline constexpr int kOwnLimitSeconds = 1800;

// Runs a command with both outputs in one text, for at most `limit_s` seconds;
// the exit status is kTimedOut, or 137 if it did not even react to SIGTERM,
// after that.
ProgramOutput Run(const std::vector<std::string>& arguments,
                  int limit_s = kLimitSeconds);

// The same for a line of sh(1).
ProgramOutput Shell(const std::string& line);

// build/<path>.
std::string Built(const std::string& path);

// build/bin/clew.
std::string Binary();

// The same for that program. The command line is printed, so that a failed
// test shows how to repeat it.
ProgramOutput Clew(std::vector<std::string> arguments);

// The same with standard output in a file, however long.
ProgramOutput ClewInto(const std::string& file,
                       std::vector<std::string> arguments);

// `clew <verb> --time-limit <kOwnLimitSeconds> <arguments>`.
ProgramOutput ClewAtLeisure(const std::string& verb,
                            const std::vector<std::string>& arguments);

// `clew solve` finds a witness and says `told`; twenty replays agree. As gtest
// expectations.
void ExpectSolvedAndReplayed(const std::string& bundle, const char* told = "");

// Why inputs cannot be watched by eBPF here; empty: they can.
std::string WhyNoBpf();

// build/tests/programs/<name>.
std::string Tracee(const std::string& name);

// Records a failing run of Tracee(program) into `bundle`, with seeds from
// `seed` on; fails the test, as ASSERT_ does, if there is none.
void RecordFailure(const std::string& bundle, const std::string& program,
                   int seed, const std::vector<std::string>& arguments = {});

// Records `command`, which has to end with exit status 0, into `bundle`, solves
// it memory-exact, and replays it to that exit status, as gtest expectations.
// Returns what the program and the recorder put out.
std::string FollowRun(const std::vector<std::string>& command, int seed,
                      const std::string& bundle);

// tests/programs/<name>.c: the number of the line that has `marker`, 0 if none.
int LineOf(const std::string& name, const std::string& marker);

// A new directory that is removed unless the test that owns it failed
// meanwhile; then its path is printed.
class Scratch {
 public:
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string Path(const std::string& name) const { return root_ + "/" + name; }
  // For one that outlives the test that fails.
  void Keep() { kept_ = true; }

 private:
  std::string root_;
  bool kept_ = false;
  bool failed_before_;
};

}  // namespace clew::e2e

#endif  // CLEW_TESTS_E2E_CLEW_COMMAND_H_
