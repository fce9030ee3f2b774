#include "replayer/gdb/commands.h"

#include <fmt/format.h>

namespace clew::replayer::gdb {
namespace {

// For every gdb; kPython replaces the commands by better ones.
constexpr std::string_view kPlain = R"(set sysroot target:
set debuginfod enabled off
set confirm off
set remotetimeout 600

define clew-connect-aloud
  target remote {}
  set scheduler-locking step
end
define clew-connect
  clew-connect-aloud
end
define clew-look-again
  maintenance flush register-cache
  maintenance flush dcache
  sharedlibrary
end
define hookpost-monitor
  clew-look-again
end
define clew-show-failure
  monitor failure
  frame
end
define clew-show-next
  echo try: backtrace, info threads, reverse-continue\n
  echo \ \ \ \  monitor seek N|start|end, monitor position\n
end
)";

constexpr std::string_view kPython = R"(
python
def define_clew_commands():
    import os

    def command(name, action):
        class Command(gdb.Command):
            __doc__ = action.__doc__
            def __init__(self):
                super().__init__(name, gdb.COMMAND_RUNNING)
            def invoke(self, argument, from_tty):
                action()
        Command()

    def output_of(line):
        return gdb.execute(line, to_string=True)

    def say_where_it_stops(on):
        try:  # since gdb 13
            output_of("set suppress-cli-notifications " + ("off" if on else "on"))
        except gdb.error:
            pass

    def connect():
        """Connect to the replay."""
        say_where_it_stops(False)
        try:
            text = output_of("clew-connect-aloud")
        finally:
            say_where_it_stops(True)
        for line in text.splitlines():
            if line.startswith("warning: ") and "can be slow" not in line:
                gdb.write(line + "\n")

    def has_source_of_user(frame):
        symtab = frame.find_sal().symtab
        path = symtab.fullname() if symtab else ""
        return os.path.exists(path) and not path.startswith("/usr/include/")

    def frame_with_source():
        frame = gdb.newest_frame()
        for _ in range(64):
            if not frame or has_source_of_user(frame):
                return frame
            frame = frame.older()
        return None

    def show_failure():
        """Show how the recorded run failed, and where."""
        thread = gdb.selected_thread()
        text = output_of("monitor failure")
        if "(tid %d) " % thread.ptid[1] in text:
            text = text.replace("thread ", "thread %d " % thread.num, 1)
        gdb.write(text)
        newest, source = gdb.newest_frame(), frame_with_source()
        if source != newest:
            gdb.write(output_of("frame").splitlines()[0] + "\n")
        if source:
            source.select()
            gdb.write(output_of("frame"))
            newest.select()

    def show_next():
        """Show what to type next in a replay."""
        gdb.write(
            "try: backtrace; info threads; 'watch -location VARIABLE', then"
            " 'reverse-continue'\n"
            "     'monitor seek N|start|end' moves in time, 'monitor position'"
            " says where you are\n")

    def select(tid):
        try:
            number = gdb.selected_thread().num
        except (AttributeError, SystemError):
            number = 0  # none, or one that is gone
        for thread in gdb.selected_inferior().threads():
            if thread.ptid[1] == tid:
                thread.switch()
                if thread.num != number:
                    gdb.write("[Switching to thread %d (Thread %d)]\n"
                              % (thread.num, tid))

    def look_again():
        """Show the present position of the replay as if it had stopped there.

Does nothing unless the last 'monitor' command moved the replay."""
        try:
            moved_to = output_of("monitor moved").strip()
        except gdb.error:
            return  # another target
        if not moved_to:
            return
        select(int(moved_to))
        output_of("maintenance flush register-cache")
        output_of("maintenance flush dcache")
        output_of("sharedlibrary")
        # gdb looks for ld.so as after connecting, and takes the old values of
        # watchpoints again.
        output_of("set sysroot " + gdb.parameter("sysroot"))
        gdb.execute("frame")
        gdb.execute("display")

    command("clew-connect", connect)
    command("clew-show-failure", show_failure)
    command("clew-show-next", show_next)
    command("clew-look-again", look_again)

define_clew_commands()
end
)";

}  // namespace

std::string CommandsFor(std::string_view remote) {
  return fmt::format(kPlain, remote).append(kPython);
}

}  // namespace clew::replayer::gdb
