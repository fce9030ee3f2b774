// Writes the known inputs of redaction_fuzz into the folder that is its
// argument:
//
//   redaction_corpus tests/fuzz/corpus/redaction_fuzz
//
// They are core dumps with what a redaction looks for: a stack with arguments
// and variables, copies of their values, registers, a mapped file.

#include <elf.h>
#include <sys/procfs.h>
#include <sys/user.h>

#include <cstdio>
#include <cstring>
#include <span>
#include <string>

#include "common/os/file.h"
#include "tests/support/core_maker.h"
#include "tests/support/stack_page.h"

namespace {

using namespace clew;  // NOLINT: one small program

constexpr uint64_t kCodeAt = 0x4000'0000;
constexpr uint64_t kHeapAt = 0x5000'0000;
constexpr uint64_t kStackAt = 0x7000'0000;
constexpr uint64_t kVdsoAt = 0x7fff'0000;
constexpr uint64_t kPage = 4096;
constexpr Elf64_auxv_t kAuxv[] = {
    {.a_type = AT_RANDOM, .a_un = {.a_val = kStackAt + 0x800}},
    {.a_type = AT_NULL, .a_un = {.a_val = 0}}};

void AddThread(CoreMaker& core) {
  elf_prstatus status = {};
  status.pr_pid = 7;
  user_regs_struct regs = {};
  regs.rsp = kStackAt + 0x80;
  std::memcpy(&status.pr_reg, &regs, sizeof regs);
  core.AddNote(NT_PRSTATUS, BytesOf(status));
  core.AddNote(NT_X86_XSTATE, std::string(600, 'r'));
}

void AddProcess(CoreMaker& core) {
  elf_prpsinfo info = {};
  std::strcpy(info.pr_psargs, "prog --password hunter2-correct-horse");
  core.AddNote(NT_PRPSINFO, BytesOf(info));
  core.AddNote(NT_AUXV, BytesOf(kAuxv));
  std::string files;
  for (const uint64_t value :
       {uint64_t{1}, kPage, kCodeAt, kCodeAt + kPage, uint64_t{0}}) {
    files += BytesOf(value);
  }
  core.AddNote(NT_FILE, files + "/usr/bin/prog" + '\0');
}

// All in one: small parts keep an input small, which makes mutations count.
std::string WholeDump(uint64_t align_bytes) {
  CoreMaker core(align_bytes);
  AddThread(core);
  AddProcess(core);
  core.AddMemory(kCodeAt, PF_R | PF_X, std::string(32, 'c'), kPage);
  core.AddMemory(kHeapAt, PF_R | PF_W, "Bearer tok-5e3a91bc77; kept", kPage);
  core.AddMemory(
      kStackAt, PF_R | PF_W,
      StackPage(kStackAt, {"prog", "--password", "hunter2-correct-horse"},
                {"HOME=/", "API_TOKEN=tok-5e3a91bc77"}, kAuxv));
  core.AddMemory(kVdsoAt, PF_R | PF_X, "vdso", kPage);
  return core.File();
}

std::string DumpWithoutStack() {
  CoreMaker core;
  AddProcess(core);
  core.AddMemory(kCodeAt, PF_R, "code", kPage);
  core.AddMemory(kHeapAt, PF_R | PF_W, "writable, and kept");
  core.AddMemory(kVdsoAt, PF_R, "read-only, and kept");
  return core.File();
}

bool Write(const std::string& path, const std::string& bytes) {
  return WriteWholeFile(PosixFileSystem(), path,
                        std::as_bytes(std::span(bytes)))
      .has_value();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: redaction_corpus <folder>\n", stderr);
    return 2;
  }
  const std::string folder = argv[1];
  const bool written = Write(folder + "/whole", WholeDump(1)) &&
                       Write(folder + "/aligned", WholeDump(kPage)) &&
                       Write(folder + "/no_stack", DumpWithoutStack());
  return written ? 0 : 1;
}
