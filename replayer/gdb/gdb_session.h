#ifndef CLEW_REPLAYER_GDB_GDB_SESSION_H_
#define CLEW_REPLAYER_GDB_GDB_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "replayer/gdb/file_server.h"
#include "replayer/gdb/monitor_commands.h"
#include "replayer/gdb/packet_hex.h"
#include "replayer/image_files.h"
#include "replayer/target.h"
#include "replayer/timeline.h"

namespace clew::replayer::gdb {

// The other end, as far as a command needs it while it runs.
class GdbClient {
 public:
  virtual ~GdbClient() = default;
  // Returns whether gdb has asked to interrupt, or is gone. Clears the request.
  virtual bool Interrupted() = 0;
  // Sends a packet that is not a reply (program output).
  virtual void Notify(std::string_view payload) = 0;
};

struct Reply {
  std::string payload;              // empty: the command is not known
  bool send = true;                 // false: the protocol wants no reply
  bool close = false;               // the session is over after the reply
  bool stop_acknowledging = false;  // from the next packet on
};

// Answers each packet of gdb: a replay as gdb sees it. Read-only: what gdb
// tries to write to registers or memory is refused, because the run has already
// happened.
//
// Any bytes may come as a packet. Not thread-safe.
class GdbSession final : private OutputSink {
 public:
  // All borrowed, and must outlive the session.
  GdbSession(Timeline& timeline, ImageFiles& files, GdbClient& client);
  ~GdbSession() override;
  GdbSession(const GdbSession&) = delete;
  GdbSession& operator=(const GdbSession&) = delete;

  Reply Handle(std::string_view packet_untrusted);

 private:
  void OnOutput(std::span<const std::byte> bytes) override;

  // gdb_session.cc: threads, registers, memory, stop points
  Reply HandleV(FieldReader fields);
  std::string SelectThread(FieldReader fields);
  std::string ThreadAlive(FieldReader fields) const;
  std::string ReadRegister(FieldReader fields) const;
  std::string ReadAllRegisters() const;
  std::string ReadMemory(FieldReader fields) const;
  std::string WriteMemory(FieldReader fields) const;
  std::string SetStopPoint(bool insert, FieldReader fields);
  std::string SetBreakpoint(bool insert, uint64_t addr, bool hardware);
  std::string SetWatchpoint(bool insert, const Watchpoint& watch);
  Tid GeneralThread() const;
  bool Exists(Tid tid) const;

  // gdb_session_query.cc
  Reply HandleQuery(std::string_view packet);
  std::string Supported(std::string_view features);
  std::string LearnSymbol(FieldReader fields);
  std::string ThreadLocalAddr(FieldReader fields) const;
  std::string ThreadList() const;
  std::string ThreadExtra(FieldReader fields) const;
  std::string Transfer(FieldReader fields) const;
  std::optional<std::string> Object(std::string_view name,
                                    std::string_view annex) const;
  std::string ThreadsXml() const;
  std::string SigInfo() const;
  std::string Monitor(std::string_view command);

  // gdb_session_run.cc
  std::string ResumeV(FieldReader fields);
  std::string ResumeForward(std::optional<Tid> step);
  std::string StepRange(Tid tid, uint64_t begin, uint64_t end);
  std::string ReverseStep();
  std::string ReverseContinue();
  std::string Arrived(const TimelineStop& stop);
  std::string Stopped(const Result<TimelineStop>& stop);
  std::string StopReply(const TimelineStop& stop) const;
  std::string StopReason(const TimelineStop& stop) const;
  std::string PresentStop() const;
  std::optional<int> FailureSignal() const;

  struct BreakpointKinds {
    bool software = false;
    bool hardware = false;
  };

  Timeline& timeline_;
  MonitorState monitor_;
  GdbClient& client_;
  FileServer file_server_;
  StopPoints points_;
  std::map<uint64_t, BreakpointKinds> breakpoints_;
  std::optional<uint64_t> module_id_desc_;  // the address of kModuleIdSymbol
  std::optional<Tid> general_thread_;       // Hg
  std::optional<Tid> continue_thread_;      // Hc
  bool tells_software_breaks_ = false;      // gdb understands swbreak:
  bool tells_hardware_breaks_ = false;      // gdb understands hwbreak:
};

// Returns gdb's number for a Linux signal: include/gdb/signals.def.
int GdbSignal(int linux_signal);

}  // namespace clew::replayer::gdb

#endif  // CLEW_REPLAYER_GDB_GDB_SESSION_H_
