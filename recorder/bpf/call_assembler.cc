#include "recorder/bpf/call_assembler.h"

#include <fmt/format.h>
#include <linux/limits.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "common/digest.h"
#include "common/linux/syscall_result.h"

namespace clew::recorder::bpf {
namespace {

// linux/errno.h: what a call leaves for the code that delivers signals, besides
// kRestartSys and kRestartBlock. After the latter the kernel sees another
// number, of which the BPF program says the call's own.
constexpr int64_t kRestartNoInterrupt = -513;
constexpr int64_t kRestartNoHandler = -514;

constexpr uint64_t kSaRestart = 0x10000000;  // asm/signal.h
constexpr size_t kUnusedMax = 4096;

bool AsksForRestart(const RawCall& call) {
  return (call.flags & kRawReturned) != 0 && clew::AsksForRestart(call.result);
}

// Source: arch/x86/kernel/signal.c, handle_signal and
// arch_do_signal_or_restart.
int64_t ResultAfter(int64_t result, const RawSignal* handled) {
  if (handled == nullptr) {
    return kRestartSys;
  }
  switch (result) {
    case kRestartSys:
      return (handled->taken.sa_flags & kSaRestart) != 0 ? kRestartSys : -EINTR;
    case kRestartNoInterrupt:
      return kRestartSys;
    case kRestartNoHandler:
    case kRestartBlock:
      return -EINTR;
    default:
      return result;
  }
}

const RawHead& HeadOf(const RawEvent& event) {
  return std::visit(
      [](const auto& body) -> const RawHead& {
        if constexpr (requires { body.piece; }) {
          return body.piece.head;
        } else {
          return body.head;
        }
      },
      event);
}

}  // namespace

void CallAssembler::Memory::Clear() {
  bytes.clear();
  pieces.clear();
  path.clear();
  inode.reset();
  taken = 0;
}

CallAssembler::Thread& CallAssembler::Find(const RawHead& head) {
  const ThreadName who = {.process = static_cast<int32_t>(head.process),
                          .thread = Tid(static_cast<int32_t>(head.thread))};
  auto found = threads_.find(head.thread);
  if (found == threads_.end()) {
    if (unused_.empty()) {
      found = threads_.emplace(head.thread, Thread()).first;
    } else {
      unused_.back().key() = head.thread;
      found = threads_.insert(std::move(unused_.back())).position;
      unused_.pop_back();
    }
  }
  found->second.who = who;
  return found->second;
}

void CallAssembler::Release(uint32_t thread) {
  auto node = threads_.extract(thread);
  if (node.empty() || unused_.size() >= kUnusedMax) {
    return;
  }
  Thread& state = node.mapped();
  state.sequence = 0;
  state.memory_sequence = 0;
  state.overflowed = false;
  state.holds = false;
  state.memory.Clear();
  state.held_memory.Clear();
  unused_.push_back(std::move(node));
}

Status CallAssembler::Take(const RawEvent& event, InputSink& sink) {
  if (const auto* const piece = std::get_if<PieceEvent>(&event)) {
    TakePiece(*piece);
    return {};
  }
  Thread& thread = Find(HeadOf(event));
  const auto* const signal = std::get_if<RawSignal>(&event);
  CLEW_RETURN_IF_ERROR(TakeUnit(thread, HeadOf(event), signal, sink));
  if (signal != nullptr) {
    return TakeSignal(*signal, sink);
  }
  if (const auto* const call = std::get_if<RawCall>(&event)) {
    return TakeCall(*call, sink);
  }
  return TakeEnd(std::get<RawEnd>(event), sink);
}

void CallAssembler::TakePiece(const PieceEvent& event) {
  Thread& thread = Find(event.piece.head);
  if (thread.memory_sequence != event.piece.head.sequence) {
    thread.memory.Clear();
    thread.overflowed = false;
    thread.memory_sequence = event.piece.head.sequence;
  }
  Memory& memory = thread.memory;
  ++memory.taken;
  if (event.piece.use == kRawFileName || event.piece.use == kRawFile) {
    TakeFile(event, thread);
    return;
  }
  // Words that the kernel's side adds do not count there.
  if (memory.bytes.size() + event.bytes.size() >
      call_bytes_max_ + CLEW_RAW_PIECE_SMALL) {
    thread.overflowed = true;
    return;
  }
  memory.pieces.push_back({.addr = event.piece.addr,
                           .offset = memory.bytes.size(),
                           .size_bytes = event.bytes.size(),
                           .output = event.piece.use == kRawOutput});
  memory.bytes.insert(memory.bytes.end(), event.bytes.begin(),
                      event.bytes.end());
}

void CallAssembler::TakeFile(const PieceEvent& event, Thread& thread) {
  Memory& memory = thread.memory;
  if (event.piece.use == kRawFile) {
    uint64_t inode = 0;
    std::memcpy(&inode, event.bytes.data(),
                std::min(sizeof(inode), event.bytes.size()));
    memory.inode = inode;
  } else if (memory.path.size() + event.bytes.size() < PATH_MAX) {
    memory.path.insert(
        0, fmt::format("/{}", std::string_view(reinterpret_cast<const char*>(
                                                   event.bytes.data()),
                                               event.bytes.size())));
  } else {
    thread.overflowed = true;
  }
}

// What is due before the unit itself: the call that waited for it, and losses.
Status CallAssembler::TakeUnit(Thread& thread, const RawHead& head,
                               const RawSignal* signal, InputSink& sink) {
  const bool no_handler =
      signal != nullptr && !IsHandler(signal->taken.handler);
  if (thread.holds && (!no_handler || head.lost > 0)) {
    const Next next = head.lost > 0          ? Next::kNobodyKnows
                      : head.kind == kRawEnd ? Next::kEnd
                                             : Next::kUnit;
    CLEW_RETURN_IF_ERROR(Settle(thread, next, signal, sink));
  }
  const uint64_t wanted = thread.sequence + 1 + head.lost;
  InputLoss loss = {
      .who = thread.who, .count = head.lost, .causes = Causes(head.causes)};
  if (head.sequence != wanted) {
    ++broken_;
    loss.count = head.sequence > wanted ? head.sequence - thread.sequence - 1
                                        : std::max(head.lost, 1u);
    loss.causes.Add(kRawBroken);
  }
  thread.sequence = head.sequence;
  return loss.count > 0 ? sink.OnLoss(loss) : Status();
}

// Whether the memory at hand is not all that the unit `head` says it has.
bool CallAssembler::LacksMemory(Thread& thread, const RawHead& head,
                                uint32_t pieces) {
  if (thread.memory_sequence != head.sequence) {
    thread.memory.Clear();
    thread.overflowed = false;
  }
  const bool lacks = thread.overflowed || thread.memory.taken != pieces;
  broken_ += lacks ? 1 : 0;
  return lacks;
}

Status CallAssembler::TakeCall(const RawCall& raw, InputSink& sink) {
  Thread& thread = Find(raw.head);
  RawCall call = raw;
  if (LacksMemory(thread, raw.head, raw.pieces)) {
    call.unknown |= 1u << kRawBroken;
  }
  if (!AsksForRestart(call)) {
    return HandOn(thread.who, call, thread.memory, sink);
  }
  thread.holds = true;
  thread.held = call;
  std::swap(thread.memory, thread.held_memory);
  thread.memory_sequence = 0;
  return {};
}

Status CallAssembler::Settle(Thread& thread, Next next, const RawSignal* signal,
                             InputSink& sink) {
  thread.holds = false;
  RawCall& call = thread.held;
  if (next == Next::kEnd) {  // it, or the recording, before it was back
    call.flags = 0;
  } else if (next == Next::kUnit) {
    call.result = ResultAfter(call.result, signal);
  }
  if (next == Next::kNobodyKnows) {
    call.unknown |= 1u << kRawInterrupted;
  }
  return HandOn(thread.who, call, thread.held_memory, sink);
}

void CallAssembler::ListWrites(const Memory& memory) {
  writes_.clear();
  for (const Piece& piece : memory.pieces) {
    if (!piece.output) {
      writes_.push_back({TraceeAddr(piece.addr), memory.BytesOf(piece)});
    }
  }
}

Status CallAssembler::HandOn(const ThreadName& who, const RawCall& call,
                             const Memory& memory, InputSink& sink) {
  InputCall out = {.who = who,
                   .number = call.number,
                   .args = {},
                   .result = {},
                   .writes = {},
                   .file = {},
                   .output_digest = {},
                   .output_bytes = 0,
                   .entered = MonotonicNanos(call.entered_ns),
                   .left = MonotonicNanos(call.left_ns),
                   .unknown = Causes(call.unknown)};
  std::ranges::copy(call.args, out.args.begin());
  if ((call.flags & kRawReturned) != 0) {
    out.result = call.result;
  }
  uint64_t digest = kEmptyDigest;
  for (const Piece& piece : memory.pieces) {
    if (piece.output) {
      digest = Digest(memory.BytesOf(piece), digest);
      out.output_bytes += piece.size_bytes;
    }
  }
  ListWrites(memory);
  out.writes = writes_;
  if (memory.inode) {
    out.file = {.path = memory.path, .inode = *memory.inode};
  }
  if (out.output_bytes > 0 && out.result &&
      out.output_bytes == static_cast<uint64_t>(*out.result)) {
    out.output_digest = digest;
  } else {
    out.output_bytes = 0;
  }
  return sink.OnCall(out);
}

Status CallAssembler::TakeSignal(const RawSignal& signal, InputSink& sink) {
  Thread& thread = Find(signal.head);
  Causes unknown(signal.unknown);
  if (LacksMemory(thread, signal.head, signal.pieces)) {
    unknown.Add(kRawBroken);
  }
  ListWrites(thread.memory);
  const RawTaken& taken = signal.taken;
  return sink.OnSignal({.who = thread.who,
                        .number = static_cast<int32_t>(taken.number),
                        .handler = taken.handler,
                        .interrupted_ip = TraceeAddr(taken.ip),
                        .interrupted_sp = taken.sp,
                        .at = MonotonicNanos(taken.at_ns),
                        .entry = {.ip = TraceeAddr(signal.entry.ip),
                                  .rsp = signal.entry.sp,
                                  .rdi = signal.entry.di,
                                  .rsi = signal.entry.si,
                                  .rdx = signal.entry.dx,
                                  .rax = signal.entry.ax},
                        .frame = writes_,
                        .unknown = unknown});
}

Status CallAssembler::TakeEnd(const RawEnd& end, InputSink& sink) {
  const ThreadName who = Find(end.head).who;
  Release(end.head.thread);
  return sink.OnThreadEnd(who);
}

Status CallAssembler::Finish(uint32_t number, const RawThread& rest,
                             InputSink& sink) {
  const auto found = threads_.find(number);
  const ThreadName who = {.process = static_cast<int32_t>(rest.process),
                          .thread = Tid(static_cast<int32_t>(number))};
  if (found != threads_.end() && found->second.holds) {
    CLEW_RETURN_IF_ERROR(Settle(found->second,
                                rest.lost > 0 ? Next::kNobodyKnows : Next::kEnd,
                                nullptr, sink));
  }
  Release(number);
  if (rest.lost > 0) {
    CLEW_RETURN_IF_ERROR(sink.OnLoss(
        {.who = who, .count = rest.lost, .causes = Causes(rest.causes)}));
  }
  if (rest.in_call == 0 || rest.ended != 0) {
    return {};
  }
  RawCall call = {};
  call.number = rest.number;
  std::ranges::copy(rest.args, call.args);
  call.entered_ns = rest.entered_ns;
  return HandOn(who, call, Memory(), sink);
}

Status CallAssembler::FinishAll(InputSink& sink) {
  for (auto& [number, thread] : threads_) {
    if (thread.holds) {
      CLEW_RETURN_IF_ERROR(Settle(thread, Next::kEnd, nullptr, sink));
    }
  }
  threads_.clear();
  return {};
}

}  // namespace clew::recorder::bpf
