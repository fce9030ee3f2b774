#ifndef CLEW_COLLECTOR_WEB_THREADS_H_
#define CLEW_COLLECTOR_WEB_THREADS_H_

#include <optional>

#include "collector/catalogue.h"
#include "collector/web/html.h"

namespace clew::collector::web {

// All threads of a bundle with their stacks, the failing one open; or why there
// are none.
void WriteThreads(HtmlWriter& html, const std::optional<Analysis>& analysis);
// The failing thread alone; nothing where it is not known.
void WriteFailingThread(HtmlWriter& html,
                        const std::optional<Analysis>& analysis);

}  // namespace clew::collector::web

#endif  // CLEW_COLLECTOR_WEB_THREADS_H_
