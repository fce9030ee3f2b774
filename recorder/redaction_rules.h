#ifndef CLEW_RECORDER_REDACTION_RULES_H_
#define CLEW_RECORDER_REDACTION_RULES_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace clew::recorder {

// What a segment of a core dump is, as far as rules go.
enum class SegmentKind {
  kStack,      // of a thread, or the first one of the process
  kHeap,       // where brk was at the start, and what grew from there
  kAnonymous,  // no file's, and neither of the above
  kFile,
};

// A word of a command line whose bytes from `from` on are taken out.
struct DroppedArgument {
  size_t index = 0;
  size_t from = 0;
  std::string pattern;  // that says so
};

// Rules for what is taken out of a bundle; docs/format/redaction.md specifies
// the text that they are parsed from. Of the rules of one kind the first that
// matches decides; what none matches is kept.
class RedactionRules {
 public:
  static constexpr size_t kTextBytesMax = 64 * 1024;

  // Fails with kInvalidArgument, naming `name` and line, if `text` is not
  // valid.
  [[nodiscard]] static Result<RedactionRules> Parse(std::string_view text,
                                                    const std::string& name);

  // `path` is that of a file's segment.
  bool DropsSegment(SegmentKind kind, const std::string& path) const;
  // Whether any rule tells the heap from other memory.
  bool NamesHeap() const;
  bool DropsVariable(const std::string& name) const;
  bool has_core_rules() const { return !core_.empty(); }
  bool has_environment_rules() const { return !environment_.empty(); }
  bool has_argument_rules() const {
    return !options_.empty() || !names_.empty();
  }
  // Values of options and names in a command line. The work grows with the
  // bytes of `words` times the patterns.
  std::vector<DroppedArgument> DroppedIn(
      const std::vector<std::string>& words) const;
  bool drops_start() const { return drops_start_; }
  bool drops_inputs() const { return drops_inputs_; }

 private:
  struct Rule {
    bool drop = false;
    std::string pattern;
  };
  Status AddLine(const std::vector<std::string>& words);
  Status AddRules(const std::vector<std::string>& words,
                  std::vector<Rule>& to) const;
  // The pattern for the value of `name`; nullptr: none.
  const std::string* PatternForValueOf(const std::string& name) const;

  std::vector<Rule> core_;
  std::vector<Rule> environment_;
  std::vector<std::string> options_;  // of drop-after
  std::vector<std::string> names_;    // of drop-value
  bool drops_start_ = false;
  bool drops_inputs_ = false;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_REDACTION_RULES_H_
