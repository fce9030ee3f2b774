#ifndef CLEW_COLLECTOR_WEB_THREADS_H_
#define CLEW_COLLECTOR_WEB_THREADS_H_

#include <optional>
#include <string>

#include "collector/catalogue/catalogue.h"
#include "collector/web/backtraces.h"
#include "collector/web/html.h"

namespace clew::collector::web {

// "bank.c:27"; empty: not known.
std::string PlaceOf(const Frame& frame);

// All threads of a bundle with their stacks, the failing one open; or why there
// are none.
void WriteThreads(HtmlWriter& html, const std::optional<Analysis>& analysis);
// The failing thread alone; nothing where it is not known.
void WriteFailingThread(HtmlWriter& html,
                        const std::optional<Analysis>& analysis);

}  // namespace clew::collector::web

#endif  // CLEW_COLLECTOR_WEB_THREADS_H_
