#ifndef CLEW_TESTS_FIDELITY_OUTCOME_H_
#define CLEW_TESTS_FIDELITY_OUTCOME_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// What becomes of a program that is correct when it is recorded, solved and
// replayed.

namespace clew::fidelity {

// From the best to the worst.
enum class Class : uint8_t {
  kSame,           // ends as it does natively, solved, replayed
  kRefused,        // `record` ends with exit status 3
  kDoubted,        // ends in another way, announced as perhaps the recorder's
  kUnfollowed,     // `solve` ends with exit status 3
  kModelDiffers,   // `solve` says that clew's model differs
  kNoAnswer,       // `solve` ends without an answer, or not at all
  kReplayDiffers,  // `replay` shows another end or other output
  kEndless,        // `record` does not end
  kKilled,         // `record` is ended by a signal
  kMadeUp,         // ends in another way, as if that were the program's doing
  kImpossible,     // `solve` says that no interleaving agrees
  kBroken,         // clew fails in any other way
};
inline constexpr int kClasses = static_cast<int>(Class::kBroken) + 1;

// As the table of expectations has it.
std::string_view NameOf(Class which);
std::optional<Class> ClassNamed(std::string_view name);

// One command that was run. `out` is what it wrote to stdout, `err` to stderr.
struct Ran {
  int exit_status = 0;  // 128 + number where a signal ended it
  std::string out;
  std::string err;
};

// The commands in the order in which they are run; what comes behind a command
// that settles the class is absent.
struct Runs {
  Ran native;
  Ran recorded;
  std::optional<Ran> solved;
  std::optional<Ran> replayed;
};

struct Outcome {
  Class which = Class::kSame;
  std::string evidence;  // one line: what settled it
};

// What is settled without the next command, nothing if that one has to be run.
std::optional<Outcome> SettledBy(const Runs& runs);

}  // namespace clew::fidelity

#endif  // CLEW_TESTS_FIDELITY_OUTCOME_H_
