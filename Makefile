# One makefile, no recursion: the whole dependency graph is in one process.
#
#   make             programs              make check        every test
#   make setup       install what builds   make demo         the main job, shown
#   make SAN=asan    same, instrumented    make lint         format, layers, tidy
#   make V=1         show the commands     make install      PREFIX, DESTDIR
#
# Objects of each variant live apart (build/, build-asan/, build-tsan/,
# build-fuzz/), so switching costs no rebuild.  A new .c file in a module folder
# needs no edit here.

VERSION := 0.1.0
PREFIX  ?= /usr/local
LIBEXEC ?= $(PREFIX)/libexec/pale
CC      ?= cc
PKGS    := fuse3 libuv sqlite3 jansson libseccomp inih libpcre2-8

# Other people's headers are not held to our warnings.
PKG_CPPFLAGS := $(patsubst -I%,-isystem %,$(shell pkg-config --cflags $(PKGS) 2>/dev/null))
PKG_LIBS     := $(shell pkg-config --libs $(PKGS) 2>/dev/null)

# pale starts before every command, and half of that was the dynamic linker:
# what its package has as an archive is linked in, but for libfuse (its licence)
# and the C library (its name services).  Debian 12 has libuv as libuv_a.a.
archive  = $(firstword $(filter /%,$(foreach n,$(1),$(shell $(CC) -print-file-name=lib$(n).a))))
LINKED  := $(call archive,sqlite3) $(call archive,jansson) $(call archive,inih) \
	   $(call archive,pcre2-8) $(call archive,uv uv_a)

SAN ?=
B   := build$(addprefix -,$(SAN))

CFLAGS   ?= -O2 -g
CPPFLAGS += -I. -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 \
	    -DVERSION='"$(VERSION)"' -DLIBEXEC='"$(LIBEXEC)"' $(PKG_CPPFLAGS)
CFLAGS   += -std=gnu17 -fPIE -fstack-protector-strong -pthread
CFLAGS   += -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
	    -Wold-style-definition -Wwrite-strings -Wpointer-arith -Wformat=2 \
	    -Wundef -Wvla -Wswitch-enum -Wimplicit-fallthrough
LDFLAGS  += -pie -pthread -Wl,-z,relro,-z,now -Wl,--as-needed

# Errors for us and CI, not for whoever builds a release with a newer compiler.
ifneq ($(wildcard .git)$(CI),)
CFLAGS += -Werror
endif

ifeq ($(SAN),asan)
CFLAGS  += -O1 -fsanitize=address,undefined -fno-sanitize-recover=all \
	   -fno-omit-frame-pointer
LDFLAGS += -fsanitize=address,undefined
else ifeq ($(SAN),tsan)
CFLAGS  += -O1 -fsanitize=thread
LDFLAGS += -fsanitize=thread
else ifeq ($(SAN),fuzz)
CC      := clang
CFLAGS  += -O1 -fsanitize=address,undefined,fuzzer-no-link \
	   -fno-sanitize-recover=all
LDFLAGS += -fsanitize=address,undefined
else
CPPFLAGS += -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
endif

# What the sanitizers put in confuses gcc's guess.
ifneq ($(filter asan tsan,$(SAN)),)
CFLAGS  += $(if $(findstring clang,$(CC)),,-Wno-maybe-uninitialized)
endif

# The sanitizers' reports are lost in Check's forked children.
export CK_FORK := $(if $(SAN),no,yes)

Q := $(if $(V),,@)

# ---- modules, lowest layer first; tools/check-layers holds the same order ----

MODULES := base rpc policy fusefs pty jobs
objs     = $(patsubst %.c,$(B)/%.o,$(wildcard $(1)/*.c))

LIB_OBJS    := $(foreach m,$(MODULES),$(call objs,$(m)))
WARDEN_OBJS := $(call objs,warden)
CLI_OBJS    := $(call objs,cli)
HELPER_OBJS := $(call objs,mount-helper)
BASE_OBJS   := $(call objs,base)
UNIT_TESTS  := $(patsubst tests/unit/%.c,$(B)/tests/unit/%,\
		 $(wildcard tests/unit/test_*.c))
TEST_TOOLS  := $(patsubst tests/tools/%.c,$(B)/tests/tools/%,\
		 $(wildcard tests/tools/*.c))
FUZZERS     := $(patsubst tests/fuzz/%.c,build-fuzz/tests/fuzz/%,\
		 $(wildcard tests/fuzz/fuzz_*.c))

.DEFAULT_GOAL := all
all: $(B)/pale $(B)/pale-mount-helper

tests: $(UNIT_TESTS) $(TEST_TOOLS)

$(B)/pale: $(CLI_OBJS) $(WARDEN_OBJS) $(B)/libcore.a
	@echo "  LD      $@"
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(if $(SAN),,$(LINKED)) $(PKG_LIBS) -lm

# The helper starts before every command: static, libc only, no dynamic loading
# (a sanitizer's runtime wants to be dynamic).
ifeq ($(SAN),tsan)
# The sanitizer's vfork shares no memory, which is how spawn.c hears of failure.
# The usher's threads are seen by their unit test.
$(B)/pale-mount-helper: force
	$(Q)$(MAKE) --no-print-directory SAN= B=build build/pale-mount-helper
	$(Q)cmp -s build/pale-mount-helper $@ || cp build/pale-mount-helper $@
else
$(B)/pale-mount-helper: $(HELPER_OBJS) $(B)/libbase.a
	@echo "  LD      $@"
	$(Q)$(CC) $(if $(SAN),$(LDFLAGS),-static-pie -pthread -Wl,-z,relro,-z,now) -o $@ $^
endif

# An archive, so that the helper gets only what it calls.
$(B)/libcore.a: $(LIB_OBJS)
	@echo "  AR      $@"
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(B)/libbase.a: $(BASE_OBJS)
	@echo "  AR      $@"
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(B)/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC      $<"
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

# --wrap lets a test make an allocation of ours fail: see tests/unit/oom.h.
WRAP := -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc

# Unit tests reach every module but main(): the helper's, the warden's and the
# commands' parts are in an archive, so that a test links what it calls.
TESTED := $(filter-out $(B)/mount-helper/main.o $(B)/cli/main.o,\
	    $(HELPER_OBJS) $(WARDEN_OBJS) $(CLI_OBJS))

$(B)/libtested.a: $(TESTED)
	@echo "  AR      $@"
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(B)/tests/unit/test_%: $(B)/tests/unit/test_%.o $(B)/tests/unit/oom.o $(B)/libtested.a $(B)/libcore.a
	@echo "  LD      $@"
	$(Q)$(CC) $(LDFLAGS) $(WRAP) -o $@ $^ $(PKG_LIBS) $(shell pkg-config --libs check)

# It prints what the helper would load.
$(B)/tests/tools/filterdump: $(B)/mount-helper/seccomp.o $(B)/mount-helper/steps.o $(B)/base/errmsg.o

# It has the process that repeats the host's changes.
$(B)/tests/tools/fsmount: $(B)/mount-helper/echo.o $(B)/mount-helper/lockdown.o $(B)/mount-helper/steps.o $(B)/mount-helper/seccomp.o $(B)/mount-helper/landlock.o

$(B)/tests/tools/%: $(B)/tests/tools/%.o $(B)/libcore.a
	@echo "  LD      $@"
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(PKG_LIBS)

build-fuzz/tests/fuzz/fuzz_%: build-fuzz/tests/fuzz/fuzz_%.o build-fuzz/libcore.a
	@echo "  LD      $@"
	$(Q)clang -fsanitize=address,undefined,fuzzer -pthread -o $@ $^ $(PKG_LIBS)

# What is compiled in is not what was installed before: paths that change
# rebuild what holds them.
$(B)/settings: force
	@mkdir -p $(@D); echo '$(VERSION) $(LIBEXEC)' | cmp -s - $@ || echo '$(VERSION) $(LIBEXEC)' >$@

$(CLI_OBJS): $(B)/settings

SOURCES = $(wildcard $(addsuffix /*.[ch],$(MODULES) warden cli mount-helper \
	    tests/unit tests/tools tests/fuzz))

include tools/checks.mk

-include $(shell find $(B) -name '*.d' 2>/dev/null)
