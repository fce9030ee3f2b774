#ifndef CLEW_CLI_COMMAND_H_
#define CLEW_CLI_COMMAND_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

// CLI11 behind a door. It is all headers, nine seconds of compiling for each
// file that uses it, so command.cc alone does. Methods have CLI11's names and
// do what its documentation says. Not thread-safe.

namespace clew::cli {

// What values an option takes; as the help text says it.
struct Range {
  int low;
  int high;
};
struct IsMember {
  std::vector<std::string> values;
};
struct PositiveNumber {};

// One option, flag or positional of a command; lives as long as that.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}
  Option* required();
  Option* capture_default_str();
  Option* type_name(const std::string& name);
  Option* group(const std::string& name);
  Option* expected(int low, int high);
  Option* allow_extra_args(bool allow);
  Option* excludes(Option* other);
  Option* check(const Range& range);
  Option* check(const IsMember& one_of);
  Option* check(PositiveNumber kind);
  // Returns how often it was given.
  size_t count() const;

 private:
  CLI::Option* option_;
};

// The program, or one of its commands.
class Command {
 public:
  // The program itself.
  Command(const std::string& about, const std::string& name);
  ~Command();
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  Command* add_subcommand(const std::string& name, const std::string& about);
  // `value`, which must outlive the command, holds the default and is set when
  // the command line is read. T: one of the types at the end of command.cc.
  template <class T>
  Option* add_option(const std::string& names, T& value,
                     const std::string& about);
  Option* add_flag(const std::string& names, bool& value,
                   const std::string& about);
  void footer(const std::string& text);
  void callback(std::function<void()> action);
  void require_subcommand(int count);
  void positionals_at_end();

  // Return what was given, once the command line has been read. REQUIRES: there
  // is an option of that name.
  size_t CountOf(const std::string& name) const;
  bool HasOfGroup(const std::string& group) const;

  // Reads the command line and calls the callback of the command that it names.
  // Returns the exit status if the program is to end: help was asked for, or
  // the line makes no sense, which is said on stderr. REQUIRES: this is the
  // program.
  std::optional<int> Parse(int argc, char** argv);
  bool HasChosen() const;  // a command was named
  // Return the help text of the program, or that of the command `name`; nullopt
  // if there is no such command.
  std::string Help() const;
  std::optional<std::string> HelpOf(const std::string& name) const;

 private:
  explicit Command(CLI::App* app);
  Option* Keep(CLI::Option* option);

  std::unique_ptr<CLI::App> program_;  // nullptr: of a command
  CLI::App* app_;
  std::vector<std::unique_ptr<Option>> options_;
  std::vector<std::unique_ptr<Command>> commands_;
};

// Adds --tape-items, of a command that follows a recording: how many of its
// items are in memory at once (follower::TapeLimits).
void AddTapeItems(Command& command, uint64_t& items_max);

}  // namespace clew::cli

#endif  // CLEW_CLI_COMMAND_H_
