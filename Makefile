# sherd: `make` builds, `make check` tests, `make help` lists everything.
CC      ?= cc
PREFIX  ?= /usr/local
SAN     ?=
WERROR  ?= 0
V       ?= 0
PKGS    := libuv libsodium openblas openssl libzip zlib jansson
MISSING := $(strip $(foreach p,$(PKGS),$(shell pkg-config --exists $(p) || echo $(p))))
FLAVOR  := $(if $(SAN),$(SAN),plain)
B       ?= build/$(FLAVOR)
DIRS    ?= core matrix crypto wire store node scheduler learn audit
CFLAGS  ?= -O3 -g
override CFLAGS += -std=c11 -D_GNU_SOURCE -fvisibility=hidden -MMD -MP -I. -Iinclude \
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -ffp-contract=off -Wstrict-prototypes -Wmissing-prototypes -Wvla \
  $(shell pkg-config --cflags $(PKGS))
ifeq ($(WERROR),1)
override CFLAGS += -Werror
endif
ifneq ($(SAN),)
override CFLAGS  += -fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=all
override LDFLAGS += -fsanitize=$(SAN)
endif
LDLIBS  := $(shell pkg-config --libs $(PKGS)) -lprotobuf-nanopb -lm -ldl -lpthread
SRC     := $(sort $(wildcard $(addsuffix /*.c,$(DIRS))))
OBJ     := $(SRC:%.c=$(B)/%.o)
TESTS   := $(patsubst tests/%.c,$(B)/tests/%,$(sort $(wildcard tests/unit/*/test_*.c tests/contract/*/test_*.c)))
Q       := $(if $(filter 1,$(V)),,@)

all: deps $(B)/libsherd.a ## build the command and the library
deps:
	@test -z "$(MISSING)" || { echo "missing: $(MISSING); on Debian: apt-get install libuv1-dev libsodium-dev libopenblas-dev libssl-dev libzip-dev" >&2; exit 1; }
help: ## show this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-14s %s\n",$$1,$$2}' $(MAKEFILE_LIST)
$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(if $(Q),@echo "  CC    $@")
	$(Q)$(CC) $(CFLAGS) -c -o $@ $<
$(B)/libsherd.a: $(OBJ)
	$(if $(Q),@echo "  AR    $@")
	$(Q)rm -f $@ && $(AR) rcs $@ $^
$(B)/sherd: $(B)/cli/main.o $(B)/libsherd.a
	$(if $(Q),@echo "  LD    $@")
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)
$(B)/tests/%: $(B)/tests/%.o $(B)/libsherd.a
	$(if $(Q),@echo "  LD    $@")
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS) -lcmocka
check: $(if $(T),$(filter $(foreach x,$(T),%$(x)),$(TESTS)),$(TESTS)) ## run unit and contract tests (T=frame to pick some)
	@fail=0; for t in $(if $(T),$(filter $(foreach x,$(T),%$(x)),$(TESTS)),$(TESTS)); do \
	  CMOCKA_MESSAGE_OUTPUT=TAP timeout 60 $$t >$$t.log 2>&1 && echo "  ok    $${t#$(B)/tests/}" || { fail=1; echo "  FAIL  $$t"; cat $$t.log; }; done; exit $$fail
check-asan: ## tests under address+undefined sanitizers
	$(MAKE) SAN=address,undefined check
check-tsan: ## tests under the thread sanitizer
	$(MAKE) SAN=thread check
check-valgrind: $(TESTS) ## tests under valgrind
	@for t in $(TESTS); do valgrind -q --leak-check=full --error-exitcode=9 $$t >/dev/null 2>$$t.vg || { cat $$t.vg; exit 1; }; echo "  ok    $$t"; done
HDRS := $(wildcard include/sherd/*.h $(addsuffix /*.h,$(DIRS)))
lint: $(B)/libsherd.a ## layering, self-contained headers, symbol names
	@awk -f tools/layers.awk tools/layers.txt $(SRC) $(HDRS) $(wildcard cli/*.c)
	@for h in $(HDRS); do echo "#include \"$$h\"" | $(CC) -std=c11 -I. -Iinclude -fsyntax-only -x c - || exit 1; done
	@! nm -g --defined-only $(B)/libsherd.a | awk 'NF==3 && $$3 !~ /^sherd_/{print "bad symbol:",$$3; f=1} END{exit !f}'
fuzz: ## build fuzzers with clang and run each for FUZZ_SECS
	@mkdir -p build/fuzz/corpus && for f in tests/fuzz/fuzz_*.c; do n=$$(basename $$f .c); clang -std=c11 -D_GNU_SOURCE -g -O1 -fsanitize=fuzzer,address,undefined -I. -Iinclude -o build/fuzz/$$n $$f $(SRC) $(LDLIBS) && mkdir -p build/fuzz/corpus/$$n && build/fuzz/$$n -max_total_time=$${FUZZ_SECS:-5} build/fuzz/corpus/$$n >build/fuzz/$$n.log 2>&1 && echo "  ok    $$n" || { cat build/fuzz/$$n.log; exit 1; }; done
clean: ## remove build/
	rm -rf build
.PHONY: all deps help check check-asan check-tsan check-valgrind lint fuzz clean
.SECONDARY:
-include $(OBJ:.o=.d) $(TESTS:=.d)
