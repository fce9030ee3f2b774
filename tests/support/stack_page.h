#ifndef CLEW_TESTS_SUPPORT_STACK_PAGE_H_
#define CLEW_TESTS_SUPPORT_STACK_PAGE_H_

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace clew {

template <class T>
void Put(std::string& bytes, uint64_t at, const T& value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

inline void PutText(std::string& bytes, uint64_t at, const std::string& text) {
  bytes.replace(at, text.size() + 1, text.c_str(), text.size() + 1);
}

// Where argc is in the page.
inline constexpr uint64_t kArgcInPage = 0x100;

// A page at `addr` as the kernel leaves it for a new process: argc, argv, envp,
// auxv from kArgcInPage on, the strings in its second half.
inline std::string StackPage(uint64_t addr,
                             const std::vector<std::string>& arguments,
                             const std::vector<std::string>& environment,
                             std::span<const Elf64_auxv_t> auxv) {
  std::string page(4096, '\0');
  uint64_t at = kArgcInPage;
  uint64_t text_at = 0x900;
  const auto word = [&](uint64_t value) {
    Put(page, at, value);
    at += 8;
  };
  const auto strings = [&](const std::vector<std::string>& list) {
    for (const std::string& text : list) {
      word(addr + text_at);
      PutText(page, text_at, text);
      text_at += text.size() + 1;
    }
    word(0);
  };
  word(arguments.size());
  strings(arguments);
  strings(environment);
  for (const Elf64_auxv_t& entry : auxv) {
    Put(page, at, entry);
    at += sizeof entry;
  }
  return page;
}

}  // namespace clew

#endif  // CLEW_TESTS_SUPPORT_STACK_PAGE_H_
