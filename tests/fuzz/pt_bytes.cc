// PT bytes with code: control flow over a small file that has every kind of
// branch, so that hostile packets lead through real code.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>

#include "decoder/pt/core_decoder.h"

namespace {

using namespace clew;           // NOLINT: a fuzz target is one function
using namespace clew::decoder;  // NOLINT

constexpr uint64_t kBase = 0x400000;

// nop; jz +2; jmp -5; call +0; ret; jmp *rax; syscall; jmp self; call *rax
constexpr uint8_t kCode[] = {0x90, 0x74, 0x02, 0xeb, 0xfb, 0xe8, 0x00,
                             0x00, 0x00, 0x00, 0xc3, 0xff, 0xe0, 0x0f,
                             0x05, 0xeb, 0xfe, 0xff, 0xd0, 0xf3, 0xa4};

std::string CodeFile() {
  std::string path = "/tmp/clew-fuzz-XXXXXX";
  const int fd = mkstemp(path.data());
  FILE* file = fd < 0 ? nullptr : fdopen(fd, "wb");
  if (file == nullptr ||
      std::fwrite(kCode, 1, sizeof kCode, file) != sizeof kCode) {
    std::abort();
  }
  std::fclose(file);
  return path;
}

struct World {
  World() : file(CodeFile()), image(cache) {
    if (!image.Map(file, 0, sizeof kCode, TraceeAddr(kBase))) {
      std::abort();
    }
  }
  ~World() { std::remove(file.c_str()); }
  std::string file;
  SectionCache cache;
  CodeImage image;
};

struct Ignore final : CoreSink {
  void OnBlock(const CoreBlock&) override {}
  void OnEnter(const CoreEnter&) override {}
  void OnGap(CoreGap) override {}
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static World world;
  AuxPiece piece;
  piece.bytes = std::as_bytes(std::span(data, size));
  TimingConfig timing;
  timing.ctc_numerator = 100;
  timing.ctc_denominator = 2;
  timing.mtc_period = 3;
  CoreDecoder decoder({piece}, world.image, timing, {});
  Ignore ignore;
  while (decoder.Step(ignore)) {
  }
  return 0;
}
