/* SPDX-License-Identifier: Apache-2.0 */
/* Sealed parameter files and start-up messages. */
#include "runtime/bootproto.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "platform/base/alloc.h"
#include "platform/base/buf.h"
#include "platform/base/host.h"

enum {
    BOOTPROTO_MAGIC = 0x626f6f74,
    GOFERPROTO_MAGIC = 0x676f6672,
    BOOTPROTO_SIZE_MAX = 16 << 20,
};

struct boot_header {
    uint32_t magic;
    uint32_t flags;
    uint32_t log_level;
    uint32_t stdio_mask;
    uint32_t preserved_len;
    uint32_t doors_len;
    uint32_t listen_fds;
    uint16_t console_rows, console_cols;
    uint32_t id_size, home_size, cgroup_path_size; /* with their NUL */
    uint32_t config_size;
    uint64_t overlay_size, overlay_used, overlay_names;
};

enum {
    BOOT_FLAG_STRACE = 1,
    BOOT_FLAG_LOG_JSON = 2,
    BOOT_FLAG_HAVE_LOG = 4,
    BOOT_FLAG_FOREGROUND = 8,
    BOOT_FLAG_TERMINAL = 16,
    BOOT_FLAG_OVERLAY_ROOT = 32,
    BOOT_FLAG_OVERLAY_ALL = 64,
    BOOT_FLAG_OVERLAY_MEMORY = 128,
};

struct gofer_header {
    uint32_t magic;
    uint32_t log_level;
    uint32_t trees_len;
    uint8_t log_json, have_log, debug, immutable;
};

static int bootproto_seal(const char *name, const struct buf *b)
{
    if (buf_error(b) < 0)
        return -ENOMEM;
    CLEANUP_CLOSE int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -errno;
    int r = host_write_all(fd, b->data, b->size);
    if (r < 0)
        return r;
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
        return -errno;
    return TAKE_FD(fd);
}

static int bootproto_load(int fd, char **ret_memory, size_t *ret_size)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (st.st_size <= 0 || st.st_size > BOOTPROTO_SIZE_MAX)
        return -EINVAL;
    CLEANUP_FREE char *memory = mem_zalloc((size_t)st.st_size + 1);
    if (!memory)
        return -ENOMEM;
    ssize_t n = pread(fd, memory, (size_t)st.st_size, 0);
    if (n != st.st_size)
        return n < 0 ? -errno : -EINVAL;
    *ret_memory = TAKE_PTR(memory);
    *ret_size = (size_t)n;
    return 0;
}

int boot_params_write(const struct boot_params *p)
{
    const char *cgroup_path = p->cgroup_path ? p->cgroup_path : "";
    struct boot_header h = {
        .magic = BOOTPROTO_MAGIC,
        .flags = (p->strace ? BOOT_FLAG_STRACE : 0) | (p->log_json ? BOOT_FLAG_LOG_JSON : 0) |
                 (p->have_log ? BOOT_FLAG_HAVE_LOG : 0) | (p->foreground ? BOOT_FLAG_FOREGROUND : 0) |
                 (p->terminal ? BOOT_FLAG_TERMINAL : 0) | (p->overlay_root ? BOOT_FLAG_OVERLAY_ROOT : 0) |
                 (p->overlay_all ? BOOT_FLAG_OVERLAY_ALL : 0) | (p->overlay_memory ? BOOT_FLAG_OVERLAY_MEMORY : 0),
        .log_level = p->log_level,
        .stdio_mask = p->stdio_mask,
        .preserved_len = p->preserved_len,
        .doors_len = p->doors_len,
        .listen_fds = p->listen_fds,
        .console_rows = p->console_rows,
        .console_cols = p->console_cols,
        .id_size = (uint32_t)strlen(p->id) + 1,
        .home_size = (uint32_t)strlen(p->home) + 1,
        .cgroup_path_size = (uint32_t)strlen(cgroup_path) + 1,
        .config_size = (uint32_t)p->config_size,
        .overlay_size = p->overlay_size,
        .overlay_used = p->overlay_used,
        .overlay_names = p->overlay_names,
    };
    CLEANUP_BUF struct buf b = {.data = NULL};
    buf_append(&b, &h, sizeof(h));
    buf_append(&b, p->id, h.id_size);
    buf_append(&b, p->home, h.home_size);
    buf_append(&b, cgroup_path, h.cgroup_path_size);
    buf_append(&b, p->config, p->config_size);
    return bootproto_seal("cloister-boot", &b);
}

/* Takes a NUL-terminated string of size bytes at *inout_at. */
static const char *bootproto_string(char **inout_at, char *end, uint32_t size)
{
    char *s = *inout_at;
    if (size == 0 || size > (size_t)(end - s) || s[size - 1] != '\0')
        return NULL;
    *inout_at += size;
    return s;
}

int boot_params_read(int fd, struct boot_params *ret_params, char **ret_memory)
{
    CLEANUP_FREE char *memory = NULL;
    size_t size;
    int r = bootproto_load(fd, &memory, &size);
    if (r < 0)
        return r;
    struct boot_header h;
    if (size < sizeof(h))
        return -EINVAL;
    memcpy(&h, memory, sizeof(h));
    if (h.magic != BOOTPROTO_MAGIC || h.preserved_len > BOOTPROTO_PRESERVED_MAX ||
        h.doors_len > BOOTPROTO_DOORS_MAX)
        return -EINVAL;
    char *at = memory + sizeof(h), *end = memory + size;
    struct boot_params p = {
        .strace = h.flags & BOOT_FLAG_STRACE,
        .log_json = h.flags & BOOT_FLAG_LOG_JSON,
        .have_log = h.flags & BOOT_FLAG_HAVE_LOG,
        .foreground = h.flags & BOOT_FLAG_FOREGROUND,
        .terminal = h.flags & BOOT_FLAG_TERMINAL,
        .overlay_root = h.flags & BOOT_FLAG_OVERLAY_ROOT,
        .overlay_all = h.flags & BOOT_FLAG_OVERLAY_ALL,
        .overlay_memory = h.flags & BOOT_FLAG_OVERLAY_MEMORY,
        .overlay_size = h.overlay_size,
        .overlay_used = h.overlay_used,
        .overlay_names = h.overlay_names,
        .log_level = h.log_level,
        .console_rows = h.console_rows,
        .console_cols = h.console_cols,
        .stdio_mask = h.stdio_mask,
        .preserved_len = h.preserved_len,
        .doors_len = h.doors_len,
        .listen_fds = h.listen_fds,
        .id = bootproto_string(&at, end, h.id_size),
        .home = NULL,
    };
    if (p.id)
        p.home = bootproto_string(&at, end, h.home_size);
    if (p.home)
        p.cgroup_path = bootproto_string(&at, end, h.cgroup_path_size);
    if (!p.cgroup_path || (size_t)(end - at) != h.config_size)
        return -EINVAL;
    p.config = at;
    p.config_size = h.config_size;
    *ret_params = p;
    *ret_memory = TAKE_PTR(memory);
    return 0;
}

int gofer_params_write(const struct gofer_params *p)
{
    const struct gofer_header h = {
        .magic = GOFERPROTO_MAGIC,
        .log_level = p->log_level,
        .trees_len = p->trees_len,
        .log_json = p->log_json,
        .have_log = p->have_log,
        .debug = p->debug,
        .immutable = p->immutable,
    };
    CLEANUP_BUF struct buf b = {.data = NULL};
    buf_append(&b, &h, sizeof(h));
    buf_append(&b, p->read_only, p->trees_len);
    return bootproto_seal("cloister-gofer", &b);
}

int gofer_params_read(int fd, struct gofer_params *ret_params, char **ret_memory)
{
    CLEANUP_FREE char *memory = NULL;
    size_t size;
    int r = bootproto_load(fd, &memory, &size);
    if (r < 0)
        return r;
    struct gofer_header h;
    if (size < sizeof(h))
        return -EINVAL;
    memcpy(&h, memory, sizeof(h));
    if (h.magic != GOFERPROTO_MAGIC || size - sizeof(h) != h.trees_len)
        return -EINVAL;
    *ret_params = (struct gofer_params){
        .log_json = h.log_json,
        .have_log = h.have_log,
        .debug = h.debug,
        .immutable = h.immutable,
        .log_level = h.log_level,
        .trees_len = h.trees_len,
        .read_only = (unsigned char *)memory + sizeof(h),
    };
    *ret_memory = TAKE_PTR(memory);
    return 0;
}

int boot_send(int sock, enum boot_message_type type, int error, const char *text, int fd)
{
    struct boot_message m = {.type = type, .error = error};
    if (text)
        strncpy(m.text, text, sizeof(m.text) - 1);
    ssize_t n = host_send_fds(sock, &m, sizeof(m), &fd, fd >= 0 ? 1 : 0);
    return n < 0 ? (int)n : 0;
}

int boot_recv(int sock, struct boot_message *ret_message, int *ret_fd)
{
    struct boot_message m;
    int fd = -1;
    size_t fds_len = 1;
    ssize_t n = host_recv_fds(sock, &m, sizeof(m), &fd, &fds_len, 0);
    if (n == 0 || n == -ECONNRESET)
        return -EPIPE;
    if (n < 0)
        return n == -EMSGSIZE ? -EPROTO : (int)n;
    if (n != sizeof(m)) {
        if (fds_len)
            host_close(fd);
        return -EPROTO;
    }
    m.text[sizeof(m.text) - 1] = '\0';
    *ret_message = m;
    if (ret_fd)
        *ret_fd = fds_len ? fd : -1;
    else if (fds_len)
        host_close(fd);
    return 0;
}
