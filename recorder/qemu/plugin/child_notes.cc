// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#include "recorder/qemu/plugin/child_notes.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

namespace clew::recorder {

Result<ChildNotes> ChildNotes::Make() {
  void* const memory = mmap(nullptr, sizeof(Notes), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return SystemError(errno, "no memory to share with child processes");
  }
  return ChildNotes(static_cast<Notes*>(memory));  // zeros: all are free
}

void ChildNotes::Add(std::string_view phrase) {
  const std::vector<std::string> known = All();
  if (std::ranges::find(known, phrase) != known.end()) {
    return;
  }
  for (Note& note : *notes_) {
    uint32_t expected = kFree;
    if (note.state.compare_exchange_strong(expected, kBeingWritten)) {
      phrase.copy(note.text.data(), note.text.size() - 1);
      note.state = kWhole;
      return;
    }
  }
}

std::vector<std::string> ChildNotes::All() const {
  std::vector<std::string> phrases;
  for (const Note& note : *notes_) {
    if (note.state == kWhole) {
      phrases.emplace_back(note.text.data());
    }
  }
  return phrases;
}

}  // namespace clew::recorder
