// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#ifndef CLEW_RECORDER_QEMU_PLUGIN_CHILD_NOTES_H_
#define CLEW_RECORDER_QEMU_PLUGIN_CHILD_NOTES_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace clew::recorder {

// What processes that the program made have to tell the one that is recorded,
// in memory that all of them have: so many phrases of so many bytes, what is
// more is dropped. Any process may use it at any time; there is no lock.
class ChildNotes {
 public:
  // kSystem: no memory. It is never given back.
  [[nodiscard]] static Result<ChildNotes> Make();

  void Add(std::string_view phrase);
  // Those that are whole, in any order.
  std::vector<std::string> All() const;

 private:
  enum State : uint32_t { kFree, kBeingWritten, kWhole };
  struct Note {
    std::atomic<uint32_t> state;
    std::array<char, 252> text;  // ends by NUL
  };
  static constexpr size_t kNotesMax = 16;
  using Notes = std::array<Note, kNotesMax>;

  explicit ChildNotes(Notes* notes) : notes_(notes) {}
  Notes* notes_;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_PLUGIN_CHILD_NOTES_H_
