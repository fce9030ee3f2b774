#ifndef CLEW_RECORDER_SOFTWARE_PROGRAM_GROUP_H_
#define CLEW_RECORDER_SOFTWARE_PROGRAM_GROUP_H_

#include <sys/types.h>

#include <vector>

#include "common/result.h"

namespace clew::recorder {

// The process group of a program that is recorded. It is not the recorder's:
// what the program sends its group does not end the recorder.
//
// The program leads its group where the recorder leads its own, as the program
// would if a shell had started it; else a process that ended leads it, so that
// setsid(2) fails or succeeds as it would without the recorder.
//
// Where the recorder's group has the terminal that is its standard input, the
// program's gets it for as long as it runs: at once if the recorder is alone in
// its group, as the program asks for it if others are (`clew record ... |
// less`: both read the terminal). As long as the program has it not, what the
// terminal sends the recorder (SIGINT, SIGQUIT, SIGTSTP) is passed on. When the
// terminal stops the program, the recorder stops too, and goes on with it.
//
// One at a time, since actions of signals belong to the whole process.
class ProgramGroup {
 public:
  // kSystem: no process can be made.
  [[nodiscard]] static Result<ProgramGroup> Make();
  ProgramGroup(ProgramGroup&& other) noexcept;
  ProgramGroup& operator=(ProgramGroup&&) = delete;
  ProgramGroup(const ProgramGroup&) = delete;
  ProgramGroup& operator=(const ProgramGroup&) = delete;
  // The terminal and the actions of signals are the recorder's again.
  ~ProgramGroup();

  // In the child, between fork and exec: async-signal-safe.
  void EnterInChild() const;
  // In the recorder, after fork; before Wait.
  void Add(pid_t program);
  // Returns the wait status of the program that was added once it has ended.
  [[nodiscard]] Result<int> Wait();
  // A signal has stopped the program, or would have: does what the terminal is
  // to do, and returns when the program goes on. In the place of Wait, for who
  // traces it.
  void OnStop(int signal);

  // Processes of the group that are left, after Wait, by ascending id.
  std::vector<pid_t> Left() const;
  // Ends them.
  void End() const;

 private:
  ProgramGroup() = default;
  // Returns whether the program's group has the terminal.
  bool GiveTerminal();
  void TakeTerminal();
  void StopWithProgram(bool asked_for_terminal);
  pid_t group() const { return leader_ > 0 ? leader_ : program_; }

  pid_t leader_ = 0;        // ended and not reaped; 0: the program leads
  pid_t program_ = 0;       // 0: none was added
  bool is_shared_ = false;  // the recorder's group has other members
  bool gave_terminal_ = false;
  bool owns_actions_ = false;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_SOFTWARE_PROGRAM_GROUP_H_
