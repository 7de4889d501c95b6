// Names for the linker, by the maps beside this file. Nothing here is ever called.

extern "C" {

void dladdr() {}
void dlopen() {}
void dlsym() {}
void pthread_once() {}
void pthread_setname_np() {}
void pthread_sigmask() {}
}
