// Fails below a library that it loads by itself, by a link with a name that is
// neither the file's nor its DT_SONAME: for the debugger, which knows the
// library by that link.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/programs/visit.h"

static void GiveUp(void) { abort(); }

int main(void) {
  void* library = dlopen("libvisit.so", RTLD_NOW);  // LOADS
  if (library == NULL) {
    fprintf(stderr, "visitor: %s\n", dlerror());
    return EXIT_FAILURE;
  }
  __typeof__(&Visit) visit;
  *(void**)&visit = dlsym(library, "Visit");
  visit(GiveUp);
  return EXIT_SUCCESS;
}
