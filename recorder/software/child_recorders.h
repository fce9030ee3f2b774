#ifndef CLEW_RECORDER_SOFTWARE_CHILD_RECORDERS_H_
#define CLEW_RECORDER_SOFTWARE_CHILD_RECORDERS_H_

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/os/fd.h"
#include "common/os/ptrace.h"
#include "common/result.h"
#include "recorder/software/answer.h"
#include "recorder/software/record.h"

namespace clew::recorder {

// The recorders of the processes that a recorded program makes: a process each,
// as ptrace(2) has one thread trace one process at a time here. It records the
// child from its birth on, whatever programs that runs one after another, and
// has the recorders of its children in turn.
//
//   program    fork() |                     waitpid(), goes on ...
//   recorder   HandOver, goes on            | Collect
//   child             . asleep | exec ... SIGSEGV
//   its recorder      TakeOver | records ...      | bundle, answer
//
// Of a child that did not fail nothing is kept. Recorders die with the one that
// made them, however it ends; what they record goes on then, or ends.
class ChildRecorders {
 public:
  // They record as `options` say, which are those of the program itself, below
  // `folder`, which is made once it is needed. `in_child` is called first
  // there.
  ChildRecorders(RecordOptions options, std::string folder,
                 std::function<void()> in_child);
  ChildRecorders(const ChildRecorders&) = delete;
  ChildRecorders& operator=(const ChildRecorders&) = delete;
  // Waits until they have ended, as Collect does.
  ~ChildRecorders();

  // As NativeHow::take_child. One that cannot be recorded goes on.
  [[nodiscard]] Status Take(TracedProcess& process, Tid child);

  // A child that failed, or the first of whose children did.
  struct Failed {
    int32_t child = 0;
    RecordOutcome run;  // of the one that did
  };
  struct Children {
    std::vector<Failed> failed;           // their bundles are kept
    std::vector<std::string> unrecorded;  // and why, for people
  };
  // Returns once all have ended. With those of the program that was launched,
  // the recording of what runs still is over; it goes on by itself.
  [[nodiscard]] Children Collect();

 private:
  struct Recorder {
    pid_t process = 0;
    int32_t child = 0;  // that it records
    Fd socket;
    AnswerReader answer = {};
  };

  [[nodiscard]] Result<Recorder> Start() const;
  void TakeAnswers(bool may_block);
  void RemoveOvertaken();
  void Note(const Recorder& recorder,
            const std::optional<Result<RecordOutcome>>& answer);

  RecordOptions options_;
  std::string folder_;
  std::function<void()> in_child_;
  bool is_of_program_ = false;  // that was launched or attached to
  std::vector<Recorder> recorders_;
  Children done_;
};

// Whether a child's end is a failure of its own: many end by a signal that
// their parent sends, or that their reader has gone.
bool IsFailureOfChild(const Failure& failure);

// Takes out of `failed`, which all ended while the program still runs, those
// that ChooseFailure will not choose, however it ends. Returns them.
std::vector<ChildRecorders::Failed> TakeOvertaken(
    std::vector<ChildRecorders::Failed>& failed, const FailOn& fail_on);

// Where the recorder of a child makes its bundle, below its folder; it may be
// of a child of that child.
std::string BundleOfChild(int32_t child);

// Which of a program and its children, as they ended, is to be kept: the first
// that failed. What failed by an exit status that --fail-on names alone is a
// failure if the program failed, too, and is then the last of the children
// before it: the one whose status the program most likely passed on.
// Returns null for the program itself, also if nothing failed.
const ChildRecorders::Failed* ChooseFailure(
    const RecordOutcome& program,
    const std::vector<ChildRecorders::Failed>& children, const FailOn& fail_on);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_SOFTWARE_CHILD_RECORDERS_H_
