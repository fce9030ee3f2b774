#ifndef CLEW_DECODER_UNWINDER_H_
#define CLEW_DECODER_UNWINDER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bundle/core_dump/core_dump.h"
#include "common/units.h"
#include "decoder/loaded_images.h"

namespace clew::decoder {

// What is known of a place in code.
struct CodePlace {
  std::string symbol;  // as in the symbol table; empty: none covers the place
  uint64_t symbol_offset = 0;  // of the place, where there is a symbol
  uint64_t symbol_bytes = 0;   // its size
  std::string file;            // source file; empty: no line information
  int line = 0;
  // Of a place without a symbol: the stretch of its function that has one row
  // in the unwinding table, how far into it the place is, and its length. They
  // stay when the function moves. Both 0: not known.
  uint64_t row_offset = 0;
  uint64_t row_bytes = 0;
};

// Call stacks and names, by the unwinding tables (.eh_frame, .debug_frame),
// symbols and line tables of the images, with libdw. Where there is no table,
// by frame pointers; behind a call of an address without code, by the return
// address on top of the stack.
//
// Reads the images given and nothing else: neither separate debug information,
// nor what an image names (.gnu_debuglink, .gnu_debugaltlink), nor a server.
// Images and dump may be hostile; memory grows with the size of the images,
// compressed sections unpacked. Not thread-safe.
class Unwinder {
 public:
  using Clock = std::chrono::steady_clock;
  // Most bytes of a symbol's name; longer ones are cut off.
  static constexpr size_t kNameBytesMax = 1024;

  // Where a frame is: the instruction to be executed next, and in every frame
  // but the first the return address of a call.
  struct Frame {
    TraceeAddr pc;
    bool is_return = false;
    // The address to look up: inside the call.
    TraceeAddr place() const {
      return TraceeAddr(pc.as_int() - (is_return ? 1 : 0));
    }
  };
  struct Stack {
    std::vector<Frame> frames;  // never empty: the first is from the registers
    bool cut_off = false;       // by a limit
    bool late = false;          // by the time limit
  };

  // Both must outlive the object.
  Unwinder(const LoadedImages& images, const bundle::CoreDump* core);
  ~Unwinder();
  Unwinder(const Unwinder&) = delete;
  Unwinder& operator=(const Unwinder&) = delete;

  // REQUIRES: there is a core dump.
  Stack Unwind(const bundle::DumpThread& thread, size_t frames_max,
               Clock::time_point deadline);
  CodePlace Find(TraceeAddr place);
  // Whether the image at `place` says which lines some of its code is of.
  bool HasLines(TraceeAddr place);
  // What the C library last said before it called abort: the text of a failed
  // assertion, "double free or corruption (top)". Empty: nothing, or the dump
  // has it not.
  //
  // Source: glibc include/stdlib.h, "struct abort_msg_s", and __abort_msg.
  std::string AbortMessage();
  static constexpr size_t kMessageBytesMax = 1024;

 private:
  struct Session;
  std::unique_ptr<Session> session_;
};

// The name as people write it: C++'s is demangled.
std::string ReadableName(const std::string& symbol);

}  // namespace clew::decoder

#endif  // CLEW_DECODER_UNWINDER_H_
