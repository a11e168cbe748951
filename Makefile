# sherd: `make` builds, `make demo` shows, `make check` tests, `make help` lists everything.
#
# One library (the folders of DIRS), one command (cli/ and bench/), one binary per test. Build outputs are in
# build/<flavour>/, one flavour per set of sanitizers; build/sherd links to the plain one's command.
# Nothing here needs an installed package to be read: `make help` always works, `make` names what
# is missing, and `make demo` and `make check` install it first (tools/setup.sh).

CC      ?= cc
AR      ?= ar
PREFIX  ?= /usr/local
DESTDIR ?=
SAN     ?=
# Checks of sanitizers are the same at -O1, which compiles twice as fast; valgrind is there for memory at -O3.
CFLAGS  ?= $(if $(SAN),-O1,-O3) -g
WERROR  ?= 0
V       ?= 0
FUZZ_SECS ?= 30

VERSION := $(shell sed -n 's/^.define SHERD_VERSION "\(.*\)"/\1/p' include/sherd/version.h)
MAJOR   := $(firstword $(subst ., ,$(VERSION)))
empty   :=
comma   := ,
FLAVOUR := $(if $(SAN),$(subst $(comma),-,$(SAN)),plain)
ROOMS   := core matrix crypto schemes wire store node scheduler learn audit lib
DIRS    ?= $(ROOMS)
B       ?= build/$(FLAVOUR)
PKGS    := libuv libsodium openblas openssl libzip zlib jansson

# As many jobs as there are processors, unless the command line says otherwise.
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc 2>/dev/null || echo 2)
endif
MAKEFLAGS += --no-print-directory
Q   := $(if $(filter 1,$(V)),,@)
say  = $(if $(Q),@printf '  %-5s %s\n' $(1) $(2))

WARN := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wvla
override CPPFLAGS += -D_GNU_SOURCE -I. -Iinclude -I/usr/include/nanopb $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
override CFLAGS   += -std=c11 -fPIC -fvisibility=hidden -ffp-contract=off $(WARN)
ifeq ($(WERROR),1)
override CFLAGS   += -Werror
endif
ifneq ($(SAN),)
override CFLAGS   += -fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=all
override LDFLAGS  += -fsanitize=$(SAN)
endif
LDLIBS  := $(shell pkg-config --libs $(PKGS) 2>/dev/null) -lprotobuf-nanopb -lm -ldl -lpthread

# All files under the folders of $(1) whose name is $(2), a pattern with %.
below = $(foreach d,$(wildcard $(addsuffix /*,$(1))),$(call below,$(d),$(2)) $(filter $(2),$(d)))

# --- what there is -----------------------------------------------------------------------------
# Tests: tests/KIND/.../test_*.c, a binary each. Other files are helpers:
# tests/support/*.c is linked to all tests, FOLDER/*.c to the tests of FOLDER, prog_*.c
# becomes a program and preload_*.c a shared object beside them, and a line `* link: FLAGS` in a
# test's opening comment adds linker flags.
LIBDIRS := $(filter-out cli,$(DIRS))
SRC     := $(sort $(call below,$(LIBDIRS),%.c))
OBJ     := $(SRC:%.c=$(B)/%.o)
WHOLE   := $(if $(filter file default undefined,$(origin DIRS)),1)
CLISRC  := $(if $(WHOLE)$(filter cli,$(DIRS)),$(sort $(call below,cli bench,%.c)))
CLIOBJ  := $(CLISRC:%.c=$(B)/%.o)
COMMAND := $(if $(filter cli/main.c,$(CLISRC)),$(B)/sherd)
KINDS   := unit contract sim system
INROOM   = $(if $(WHOLE),$(1),$(foreach d,$(DIRS),$(filter tests/unit/$(d)/% tests/contract/$(d)/% tests/sim/$(d)/% tests/system/$(d)/%,$(1))))
ALLTSRC := $(sort $(call below,$(KINDS:%=tests/%),%.c))
TSRC    := $(call INROOM,$(foreach f,$(ALLTSRC),$(if $(filter test_%,$(notdir $(f))),$(f))))
SCRIPTS := $(call INROOM,$(foreach f,$(sort $(call below,$(KINDS:%=tests/%),%.sh)),$(if $(filter test_%,$(notdir $(f))),$(f))))
PROGSRC := $(foreach f,$(ALLTSRC),$(if $(filter prog_%,$(notdir $(f))),$(f)))
PRESRC  := $(foreach f,$(ALLTSRC),$(if $(filter preload_%,$(notdir $(f))),$(f)))
HELPSRC := $(filter-out $(foreach f,$(ALLTSRC),$(if $(filter test_% prog_% preload_%,$(notdir $(f))),$(f))),$(ALLTSRC))
SUPPORT := $(patsubst %.c,$(B)/%.o,$(sort $(wildcard tests/support/*.c)))
FUZZSRC := $(sort $(wildcard tests/fuzz/fuzz_*.c))
TESTS   := $(TSRC:%.c=$(B)/%)
PROGS   := $(PROGSRC:%.c=$(B)/%) $(PRESRC:%.c=$(B)/%.so)
REPLAY  := $(if $(WHOLE)$(T),$(FUZZSRC:%.c=$(B)/%))
# T=wire/test_record picks by the end of the path or, where none ends so, by any part of it.
exact    = $(strip $(foreach t,$(T),$(filter %/$(t) %/$(t).sh,$(1))))
partial  = $(foreach f,$(1),$(if $(strip $(foreach t,$(T),$(findstring $(t),$(f)))),$(f)))
CHOICE  := $(TESTS) $(SCRIPTS) $(REPLAY)
CHOSEN  := $(sort $(if $(T),$(or $(call exact,$(CHOICE)),$(call partial,$(CHOICE))),$(CHOICE)))
ifneq ($(KINDS_ONLY),)
CHOSEN  := $(foreach k,$(KINDS_ONLY),$(filter tests/$(k)/% $(B)/tests/$(k)/%,$(CHOSEN)))
endif

# --- building ----------------------------------------------------------------------------------
all: $(B)/libsherd.a $(B)/libsherd.so $(COMMAND) $(if $(COMMAND),$(if $(filter build/plain,$(B)),build/sherd)) ## build the library and the command (build/sherd)

help: ## show this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-15s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))
	@echo
	@echo "  T=wire/test_record picks tests; SAN=address,undefined; V=1 shows commands; WERROR=1;"
	@echo "  PREFIX= and DESTDIR= for install; FUZZ_SECS= for fuzz; CFLAGS= replaces -O3 -g (-O1 -g with SAN)"

deps:
	@tools/setup.sh --check build

# Rewritten only when they differ, so that new flags rebuild and equal ones do not.
FLAGS := $(CC) $(CPPFLAGS) $(CFLAGS)
$(B)/flags: FORCE | deps
	@mkdir -p $(@D); printf '%s\n' '$(subst ','\'',$(FLAGS))' | cmp -s - $@ || \
	  printf '%s\n' '$(subst ','\'',$(FLAGS))' >$@
FORCE:

# Recipes are included by the assembler, so -MD does not list them.
$(B)/lib/recipe.o: $(wildcard examples/train/*.conf)
$(B)/bench/child.o: $(wildcard bench/*.py)
$(B)/node/backends/cuda.o: node/backends/kernels/kernels.ptx
$(B)/node/backends/kernels_text.o: core/kernel.h matrix/funcs_kernels.h $(wildcard node/backends/kernels/*.h)

# Compares declarations with the toolkit's, if that is there.
$(B)/tests/unit/node/test_cublas_api.o: override CPPFLAGS += -isystem /usr/local/cuda/include

# Generated by nanopb from wire/messages.proto: compiled without some warnings.
$(B)/%.pb.o: override CFLAGS += -Wno-pedantic -Wno-conversion -Wno-missing-prototypes

$(B)/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MD -MP -c -o $@ $<

# Likewise: the archives lose a source that was removed.
$(B)/objects: FORCE
	@mkdir -p $(@D); echo '$(OBJ) $(CLIOBJ) $(SUPPORT)' | cmp -s - $@ || echo '$(OBJ) $(CLIOBJ) $(SUPPORT)' >$@

$(B)/libsherd.a: $(OBJ) $(B)/objects
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $(OBJ)

# nodelete: a process may unload the library, as Python does at its end, while threads of a cluster run in it.
$(B)/libsherd.so: $(OBJ) $(B)/objects
	$(call say,LD,$@)
	$(Q)$(CC) -shared -Wl,-soname,libsherd.so.$(MAJOR) -Wl,--exclude-libs,ALL -Wl,-z,nodelete $(if $(SAN),,-Wl,-z,defs) $(LDFLAGS) -o $@ $(OBJ) $(LDLIBS)

# The command apart from main, so that its pieces can be tested.
$(B)/libcli.a: $(filter-out $(B)/cli/main.o,$(CLIOBJ)) $(B)/objects
	$(Q)rm -f $@ && $(AR) rcs $@ $(filter %.o,$^)

$(B)/sherd: $(CLIOBJ) $(B)/libsherd.a
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $(CLIOBJ) $(B)/libsherd.a $(LDLIBS)

build/sherd: build/plain/sherd
	@ln -sf plain/sherd $@

# The same training loop in processes that mpirun starts: a program of its own, since the command is
# never linked with MPI (Debian's libopenmpi-dev).
mpi: build/sherd-mpi ## build build/sherd-mpi, for training in one trusted cluster
$(B)/mpi/main.o: mpi/main.c $(B)/flags
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)OMPI_CC="$(CC)" mpicc $(CPPFLAGS) $(filter-out -Wpedantic,$(CFLAGS)) -MD -MP -c -o $@ $<
$(B)/sherd-mpi: $(B)/mpi/main.o $(B)/libcli.a $(B)/libsherd.a
	$(call say,LD,$@)
	$(Q)OMPI_CC="$(CC)" mpicc $(CFLAGS) $(LDFLAGS) -o $@ $< $(B)/libcli.a $(B)/libsherd.a $(LDLIBS)
build/sherd-mpi: build/plain/sherd-mpi
	@ln -sf plain/sherd-mpi $@

# --- tests -------------------------------------------------------------------------------------
TESTLIBS := $(if $(CLISRC),$(B)/libcli.a) $(B)/libsherd.a
helpers   = $(patsubst %.c,$(B)/%.o,$(filter $(dir $(1))%,$(foreach h,$(HELPSRC),$(if $(filter $(dir $(1)),$(dir $(h))),$(h)))))
linkflags = $(shell sed -n '1,30s/^.*\* link: //p' $(1))

# An archive, so that a test takes of it what it uses and needs no other folder.
$(B)/tests/libsupport.a: $(SUPPORT) $(B)/objects
	$(Q)rm -f $@ && $(AR) rcs $@ $(filter %.o,$^)

define test_rule
$(B)/$(1:.c=): $(B)/$(1:.c=.o) $(call helpers,$(1)) $(B)/tests/libsupport.a $(TESTLIBS)
	$$(call say,LD,$$@)
	$$(Q)$$(CC) $$(LDFLAGS) -o $$@ $$(filter %.o,$$^) $(B)/tests/libsupport.a $$(TESTLIBS) $$(call linkflags,$(1)) $$(LDLIBS) -lcmocka
endef
$(foreach t,$(TSRC) $(PROGSRC),$(eval $(call test_rule,$(t))))

$(PRESRC:%.c=$(B)/%.so): $(B)/%.so: $(B)/%.o
	$(call say,LD,$@)
	$(Q)$(CC) -shared -o $@ $< -ldl

$(FUZZSRC:%.c=$(B)/%): $(B)/%: $(B)/%.o $(B)/tests/fuzz/replay_main.o $(TESTLIBS)
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) $(TESTLIBS) $(LDLIBS)

# Tests of several folders load the stand-ins for drivers.
$(filter $(B)/tests/contract/node/% $(B)/tests/unit/node/%,$(TESTS)): | $(filter $(B)/tests/system/node/preload_opencl% $(B)/tests/system/node/preload_cuda%,$(PROGS))

demo: ## install what is missing, build, run the main job on 7 local nodes
	@tools/setup.sh build
	+@$(MAKE) all
	@build/sherd demo

check: ## install what is missing, build, run every test (T=wire/test_record for some)
	@tools/setup.sh test
	+@$(MAKE) run-tests

NEEDS_COMMAND := $(filter tests/system/% $(B)/tests/system/%,$(CHOSEN))
# A test's programs are in its folder; system tests share theirs.
BESIDE := $(foreach p,$(PROGS),$(if $(filter $(dir $(p)),$(dir $(CHOSEN:tests/%=$(B)/tests/%)))$(if $(NEEDS_COMMAND),$(filter $(B)/tests/system/%,$(p))),$(p))) $(if $(filter %/test_mpi.sh,$(CHOSEN)),$(if $(SAN),,$(if $(shell command -v mpicc),$(B)/sherd-mpi)))
run-tests: $(filter $(B)/%,$(CHOSEN)) $(BESIDE) $(if $(and $(WHOLE),$(or $(if $(T)$(KINDS_ONLY),,1),$(NEEDS_COMMAND))),all)
	@SHERD=$(COMMAND) B=$(B) SAN=$(SAN) CC="$(CC)" tools/run-tests $(B) $(CHOSEN)

# Real processes are left to `make check`: KINDS_ONLY=system for those too.
check-asan: ## unit, contract, sim and fuzz tests under the address and undefined-behaviour sanitizers
	@tools/setup.sh test
	+@$(MAKE) SAN=address,undefined KINDS_ONLY="$(or $(KINDS_ONLY),unit contract sim fuzz)" run-tests

check-tsan: ## the unit and contract tests under the thread sanitizer
	@tools/setup.sh test
	+@OPENBLAS_NUM_THREADS=1 $(MAKE) SAN=thread KINDS_ONLY="unit contract" run-tests

# Kernels without fused multiply-add, which valgrind computes lane by lane: some ten times as fast.
# Lines of inlined functions, whose tables take a fifth of the time of a short test, are those of their callers.
check-valgrind: ## the unit tests under valgrind
	@tools/setup.sh test
	+@export OPENBLAS_CORETYPE=$${OPENBLAS_CORETYPE-Nehalem} OPENBLAS_NUM_THREADS=1; \
	  WRAP="valgrind -q --read-inline-info=no --leak-check=full --error-exitcode=99 --suppressions=tests/valgrind.supp" \
	  TIMEOUT_FACTOR=20 $(MAKE) KINDS_ONLY=unit run-tests

# The package installs the library of the tree; PyPI provides numpy, cffi and the tools.
check-python: ## the Python package, in a virtual environment (needs PyPI); T=test_cluster.py for some
	@tools/setup.sh python
	+@$(MAKE) all $(B)/tests/system/node/prog_misbehave
	@tools/check-python $(B) $(if $(T),$(addprefix $(CURDIR)/python/tests/,$(T)))

wheel: ## a wheel with library, dependencies and command: build/python/wheel (needs PyPI)
	@tools/setup.sh python
	+@$(MAKE) all
	@tools/wheel $(B)

CONTRACT := $(addprefix $(B)/tests/contract/node/,test_backend test_backend_bytes test_backend_residues test_calls)
bundle: all $(CONTRACT) ## the command with its libraries, for machines that have none of them: build/bundle
	@OBJECTS="$(CLIOBJ)" CONTRACT="$(CONTRACT)" LDFLAGS="$(LDFLAGS)" LDLIBS="$(LDLIBS)" tools/bundle $(B) "$(CC)"

python-declarations: all ## generate what the Python package repeats of the headers and of the library
	@/usr/bin/python3 python/generate.py include $(B)/libsherd.so python

lint: ## layers, headers, names, format, parameters, packages, words and links
	@tools/setup.sh lint
	+@$(MAKE) run-lint

run-lint: all $(if $(WHOLE),$(TESTS) $(if $(shell command -v mpicc),$(B)/mpi/main.o))
	@B=$(B) CC="$(CC)" PARTIAL=$(if $(WHOLE),,1) tools/lint

# tests/system/tools/test_clang.sh says why. -w: warnings are gcc's. A file whose includes are as they were is not
# compiled again.
CLANG_OK  = $(patsubst %.c,$(B)/clang/%.ok,$(1))
CLANG_SRC := $(SRC) $(CLISRC)
clang-sources: $(call CLANG_OK,$(CLANG_SRC))
clang-tests: $(call CLANG_OK,$(if $(shell pkg-config --exists ompi-c && echo mpi),mpi/main.c) $(ALLTSRC) $(wildcard tests/support/*.c) $(call below,examples,%.c))
clang-fuzzers: $(call CLANG_OK,$(FUZZSRC) tests/fuzz/replay_main.c)
$(call CLANG_OK,$(CLANG_SRC)): CLANG_DO = -c -O0 -o /dev/null
$(B)/clang/mpi/%.ok: CLANG_DO = -fsyntax-only $(shell pkg-config --cflags ompi-c)
$(B)/clang/%.ok: CLANG_DO = -fsyntax-only
$(B)/clang/%.ok: %.c Makefile
	@mkdir -p $(@D)
	@clang $(CPPFLAGS) -std=c11 -w -MD -MP -MF $(@:.ok=.d) -MT $@ $(CLANG_DO) $<
	@touch $@

tidy: ## clang-tidy over the sources
	@clang-tidy --quiet $(SRC) $(CLISRC) -- -std=c11 $(CPPFLAGS)

format: ## clang-format over the sources, in place
	@tools/setup.sh lint
	@LINT=format FIX=1 tools/lint

bench: all ## figures of this machine, side by side with numpy
	@build/sherd bench

abi: all ## record the library's binary interface, to which tests hold it
	@tools/abi $(B)/libsherd.so tests/system/abi/libsherd.abi

messages: ## generate wire/messages.pb.[ch] from wire/messages.proto (needs nanopb)
	nanopb_generator.py -q --no-timestamp wire/messages.proto

fuzz: ## each fuzz target with clang for FUZZ_SECS
	@tools/setup.sh fuzz
	@FUZZ_SECS=$(FUZZ_SECS) CPPFLAGS="$(CPPFLAGS)" LDLIBS="$(LDLIBS)" tools/fuzz.sh $(T)

mutants: ## break the code in known ways: each must turn its test red
	@tools/setup.sh test
	@tools/mutants.sh $(T)

# --- installing --------------------------------------------------------------------------------
INSTALL    ?= install
LIBDIR     ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
DOCDIR ?= $(PREFIX)/share/doc/sherd
# Programs find a new library in the linker's cache. A user who may not write that cache installs under another PREFIX.
LDCONFIG = $(if $(DESTDIR),,$(Q)PATH="$$PATH:/usr/sbin:/sbin" ldconfig 2>/dev/null || :)

install: all ## install under DESTDIR and PREFIX: headers, libraries, command, man page, documents
	$(INSTALL) -d "$(DESTDIR)$(PREFIX)/bin" "$(DESTDIR)$(LIBDIR)/pkgconfig" "$(DESTDIR)$(INCLUDEDIR)/sherd" "$(DESTDIR)$(PREFIX)/share/man/man1"
	$(INSTALL) -m 644 include/sherd/*.h "$(DESTDIR)$(INCLUDEDIR)/sherd/"
	$(INSTALL) -m 644 $(B)/libsherd.a "$(DESTDIR)$(LIBDIR)/"
	$(INSTALL) -m 755 $(B)/libsherd.so "$(DESTDIR)$(LIBDIR)/libsherd.so.$(VERSION)"
	ln -sf libsherd.so.$(VERSION) "$(DESTDIR)$(LIBDIR)/libsherd.so.$(MAJOR)"
	ln -sf libsherd.so.$(MAJOR) "$(DESTDIR)$(LIBDIR)/libsherd.so"
	sed -e 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|; s|@INCLUDEDIR@|$(INCLUDEDIR)|; s|@VERSION@|$(VERSION)|; s|@LIBS@|$(LDLIBS)|' \
	  tools/sherd.pc.in >"$(DESTDIR)$(LIBDIR)/pkgconfig/sherd.pc"
	$(if $(COMMAND),$(INSTALL) -m 755 $(COMMAND) "$(DESTDIR)$(PREFIX)/bin/sherd")
	$(if $(wildcard docs/sherd.1),$(INSTALL) -m 644 docs/sherd.1 "$(DESTDIR)$(PREFIX)/share/man/man1/")
	$(INSTALL) -d "$(DESTDIR)$(DOCDIR)/docs" "$(DESTDIR)$(DOCDIR)/examples/train"
	$(INSTALL) -m 644 README.md CHANGELOG.md LICENSE "$(DESTDIR)$(DOCDIR)/"
	$(INSTALL) -m 644 $(wildcard docs/*.md docs/*.json docs/*.svg) "$(DESTDIR)$(DOCDIR)/docs/"
	$(INSTALL) -m 644 $(wildcard examples/*.c examples/*.py examples/*.sh examples/Makefile) "$(DESTDIR)$(DOCDIR)/examples/"
	$(INSTALL) -m 644 examples/train/*.conf "$(DESTDIR)$(DOCDIR)/examples/train/"
	$(LDCONFIG)

uninstall: ## remove what install put there
	rm -f "$(DESTDIR)$(PREFIX)/bin/sherd" "$(DESTDIR)$(PREFIX)/share/man/man1/sherd.1" \
	  "$(DESTDIR)$(LIBDIR)/libsherd.a" "$(DESTDIR)$(LIBDIR)"/libsherd.so* "$(DESTDIR)$(LIBDIR)/pkgconfig/sherd.pc"
	rm -rf "$(DESTDIR)$(INCLUDEDIR)/sherd" "$(DESTDIR)$(DOCDIR)"
	$(LDCONFIG)

clean: ## remove build/
	rm -rf build

.PHONY: abi all bundle help deps demo check run-tests check-asan check-tsan check-valgrind check-python wheel python-declarations lint run-lint tidy clang-sources clang-tests clang-fuzzers \
  format messages bench fuzz mutants install uninstall clean FORCE
.SECONDARY:
.DELETE_ON_ERROR:
-include $(OBJ:.o=.d) $(CLIOBJ:.o=.d) $(B)/mpi/main.d $(SUPPORT:.o=.d) $(patsubst %.c,$(B)/%.d,$(TSRC) $(PROGSRC) $(PRESRC) $(HELPSRC) $(FUZZSRC))
-include $(if $(filter clang-%,$(MAKECMDGOALS)),$(call below,$(B)/clang,%.d))
