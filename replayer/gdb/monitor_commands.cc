#include "replayer/gdb/monitor_commands.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "replayer/gdb/failure_words.h"
#include "replayer/gdb/packet_hex.h"

namespace clew::replayer::gdb {
namespace {

std::string TellPosition(MonitorState& state, std::string_view /*arguments*/) {
  return fmt::format("{} of {}\n", state.timeline.position(),
                     state.timeline.target().end());
}

std::string SeekTo(MonitorState& state, std::string_view where) {
  const Position end = state.timeline.target().end();
  Position to = 0;
  if (where == "end") {
    to = end;
  } else if (where != "start") {
    const auto parsed =
        std::from_chars(where.data(), where.data() + where.size(), to);
    if (parsed.ec != std::errc() || parsed.ptr != where.data() + where.size() ||
        to > end) {
      return fmt::format("seek wants start, end or a number up to {}\n", end);
    }
  }
  const auto moved = state.timeline.Seek(to);
  state.moved = moved.has_value();
  return moved ? fmt::format("at {} of {}\n", state.timeline.position(), end)
               : fmt::format("clew: {}\n", moved.error().message);
}

std::string TellFailure(MonitorState& state, std::string_view /*arguments*/) {
  return DescribeFailure(state.timeline);
}

std::string TellMoved(MonitorState& state, std::string_view /*arguments*/) {
  return std::exchange(state.moved, false)
             ? fmt::format("{}\n", state.timeline.CurrentThread())
             : "";
}

struct MonitorCommand {
  std::string_view name;
  std::string_view arguments;  // for the help
  std::string_view help;
  std::string (*run)(MonitorState& state, std::string_view arguments);
};

constexpr MonitorCommand kMonitorCommands[] = {
    {"position", "", "the number of instructions all threads have retired",
     TellPosition},
    {"seek", " N|start|end",
     "go there; a gdb that 'clew replay' did not start has to\n"
     "be told: maintenance flush register-cache, info threads",
     SeekTo},
    {"failure", "", "how the run ended", TellFailure},
    {"moved", "", "the thread to look at if the last command was a seek",
     TellMoved},
};

constexpr size_t kHelpColumn = 18;

std::string HelpOf(const MonitorCommand& command) {
  std::string text = fmt::format(
      "{:<{}}", fmt::format("{}{}", command.name, command.arguments),
      kHelpColumn);
  for (const char c : command.help) {
    text += c;
    text.append(c == '\n' ? kHelpColumn : 0, ' ');
  }
  return text + "\n";
}

}  // namespace

std::string RunMonitorCommand(std::string_view command_untrusted,
                              MonitorState& state) {
  FieldReader words(command_untrusted);
  const std::string_view name = words.TakeUntil(' ');
  std::string help;
  for (const MonitorCommand& command : kMonitorCommands) {
    if (command.name == name) {
      return command.run(state, words.rest());
    }
    help += HelpOf(command);
  }
  return help;
}

}  // namespace clew::replayer::gdb
