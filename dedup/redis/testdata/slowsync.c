// A disk whose syncs take three seconds, for a program that is started with LD_PRELOAD.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>

int fdatasync(int fd) {
	int (*sync)(int) = dlsym(RTLD_NEXT, "fdatasync");
	sleep(3);
	return sync(fd);
}
