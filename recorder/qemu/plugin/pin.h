// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#ifndef CLEW_RECORDER_QEMU_PLUGIN_PIN_H_
#define CLEW_RECORDER_QEMU_PLUGIN_PIN_H_

namespace clew::recorder {

// Keeps the calling thread, and those that it makes, on the CPU on which the
// first call found it: a hand-over between threads is then several times
// cheaper. Where the host refuses, everything works, slower.
void PinToOneCpu();

// Lets the calling thread run wherever it could before the first call.
void Unpin();

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_PLUGIN_PIN_H_
