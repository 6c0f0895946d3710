/* front.c - see front.h. Both programs get their listening socket as descriptor 3: HAProxy by `bind fd@3`, nginx by the variable with which it
 * hands sockets over to its next version (which crashes with `master_process off`). So no port is guessed, and a client may connect before the program has read its configuration. */
#include "tests/proof/front/front.h"

#include "tests/support/daemon.h"
#include "tests/support/suite.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { FRONT_FD = 3 };

static const char *const names[FRONT_KINDS] = { "haproxy", "nginx" };
static const char *const programs[FRONT_KINDS] = { "/usr/sbin/haproxy", "/usr/sbin/nginx" };

/* Kept connections to the backend are shared by clients, so that a request too many there would answer somebody else's. */
static const char haproxy_kept[] = "    option http-keep-alive\n"
                                   "    http-reuse always\n";
static const char haproxy_closed[] = "    option http-server-close\n"
                                     "    http-reuse never\n";
static const char nginx_kept[] = "            proxy_http_version 1.1;\n"
                                 "            proxy_set_header Connection \"\";\n";
static const char haproxy_text[] = "global\n"
                                   "    nbthread 1\n"
                                   "    log stderr format raw daemon\n"
                                   "defaults\n"
                                   "    mode http\n"
                                   "    log global\n"
                                   "    log-format \"%%s|%%ST|%%HM|%%[capture.req.hdr(0)]\"\n"
                                   "%s"
                                   "    timeout connect 5s\n"
                                   "    timeout client 2s\n"
                                   "    timeout http-request 2s\n"
                                   "    timeout server 30s\n"
                                   "frontend clients\n"
                                   "    bind fd@3\n"
                                   "    http-request capture req.fhdr(Idempotency-Key,1) len 64\n"
                                   "    default_backend nonbis\n"
                                   "backend nonbis\n"
                                   "    server BACKEND %s\n";

static const char nginx_text[] =
    "daemon off;\n"
    "user root;\n" /* its files are in a folder of whoever runs the test; of no effect unless that is root */
    "pid nginx.pid;\n"
    "error_log nginx-error.log;\n"
    "events { worker_connections 256; }\n"
    "http {\n"
    "    log_format keys '$upstream_addr|$status|$request_method|$http_idempotency_key';\n"
    "    access_log nginx-access.log keys;\n"
    "    client_body_temp_path nginx-body;\n"
    "    proxy_temp_path nginx-proxy;\n"
    "    fastcgi_temp_path nginx-fastcgi;\n"
    "    uwsgi_temp_path nginx-uwsgi;\n"
    "    scgi_temp_path nginx-scgi;\n"
    "    client_header_timeout 2s;\n"
    "    client_body_timeout 2s;\n"
    "    keepalive_timeout 2s;\n"
    "    upstream BACKEND { server %s; %s }\n"
    "    server {\n"
    "        listen %s;\n"
    "        location / {\n"
    "            proxy_pass http://BACKEND;\n"
    "%s"
    "            proxy_set_header Host $http_host;\n"
    "        }\n"
    "    }\n"
    "}\n";

const char *front_name(enum front_kind kind)
{
    return names[kind];
}

int front_listen(char *address, size_t size)
{
    struct sockaddr_in bound = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof bound;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert(fd >= 0 && bind(fd, (struct sockaddr *) &bound, len) == 0 && listen(fd, 128) == 0 &&
              getsockname(fd, (struct sockaddr *) &bound, &len) == 0);
    (void) snprintf(address, size, "127.0.0.1:%u", (unsigned) ntohs(bound.sin_port));
    return fd;
}

/* The child: standard output and error in a file, the listening socket where the configuration expects it. */
static pid_t start(const char *const *argv, const char *log_path, int listener)
{
    pid_t parent = getpid();
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid != 0) {
        return pid;
    }
    (void) prctl(PR_SET_PDEATHSIG, SIGTERM); /* which the master of nginx hands on */
    if (getppid() != parent) {
        _exit(126);
    }
    int log = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int kept = listener >= 0 ? fcntl(listener, F_DUPFD, 10) : -1;
    (void) dup2(null, 0);
    (void) dup2(log, 1);
    (void) dup2(log, 2);
    if (kept >= 0) {
        (void) dup2(kept, FRONT_FD);
        (void) close(kept);
    }
    execve(argv[0], (char *const *) (const void *) argv, environ);
    _exit(127);
}

static char *read_file(const char *path)
{
    enum { FILE_MAX = 4 * 1024 * 1024 };
    char *text = calloc(1, FILE_MAX + 1);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t len = 0;
    ssize_t got = 1;
    while (fd >= 0 && got > 0 && len < FILE_MAX) {
        got = read(fd, text + len, FILE_MAX - len);
        len += got > 0 ? (size_t) got : 0;
    }
    if (fd >= 0) {
        (void) close(fd);
    }
    for (size_t i = 0; i < len; i++) { /* what a log holds of a NUL may not hide the rest of it */
        text[i] = text[i] == '\0' ? '?' : text[i];
    }
    return text;
}

void front_version(enum front_kind kind, char *out, size_t size)
{
    char path[700];
    const char *const argv[] = { programs[kind], "-v", NULL };
    ck_assert_msg(access(programs[kind], X_OK) == 0, "%s is not there; ./dev install-only proof installs it",
                  programs[kind]);
    (void) snprintf(path, sizeof path, "%s/%s-version", daemon_folder(), names[kind]);
    int status = -1;
    ck_assert_int_gt(waitpid(start(argv, path, -1), &status, 0), 0);
    char *text = read_file(path);
    (void) snprintf(out, size, "%.*s", (int) strcspn(text, "\n"), text);
    free(text);
}

void front_start(struct front *front, enum front_kind kind, bool kept, const char *backend)
{
    char config[700];
    char folder[700];
    front->kind = kind;
    (void) snprintf(folder, sizeof folder, "%s/", daemon_folder());
    (void) snprintf(config, sizeof config, "%s/%s.conf", daemon_folder(), names[kind]);
    int listener = front_listen(front->address, sizeof front->address);
    FILE *file = fopen(config, "w");
    ck_assert_ptr_nonnull(file);
    if (kind == FRONT_HAPROXY) {
        const char *const argv[] = { programs[kind], "-db", "-f", config, NULL };
        (void) fprintf(file, haproxy_text, kept ? haproxy_kept : haproxy_closed, backend);
        (void) fclose(file);
        (void) snprintf(front->log_path, sizeof front->log_path, "%s/haproxy.log", daemon_folder());
        front->pid = start(argv, front->log_path, listener);
    } else {
        char output[700];
        const char *const argv[] = { programs[kind], "-p", folder, "-c", config, NULL };
        (void) fprintf(file, nginx_text, backend, kept ? "keepalive 8;" : "", front->address, kept ? nginx_kept : "");
        (void) fclose(file);
        (void) snprintf(front->log_path, sizeof front->log_path, "%s/nginx-access.log", daemon_folder());
        (void) snprintf(output, sizeof output, "%s/nginx-output.log", daemon_folder());
        ck_assert_int_eq(setenv("NGINX", "3;", 1), 0);
        front->pid = start(argv, output, listener);
        ck_assert_int_eq(unsetenv("NGINX"), 0);
    }
    (void) close(listener);
}

void front_end(struct front *front)
{
    int status = -1;
    ck_assert_int_eq(kill(front->pid, front->kind == FRONT_HAPROXY ? SIGUSR1 : SIGQUIT), 0);
    ck_assert_int_eq(waitpid(front->pid, &status, 0), front->pid);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s ended with status %d, see %s", names[front->kind],
                  status, daemon_folder());
}

/* nginx writes an address per try, HAProxy the name of the server. */
static unsigned tries_of(const char *line, size_t len)
{
    unsigned tries = 0;
    for (size_t i = 0; i + 7 <= len; i++) {
        tries += memcmp(line + i, "BACKEND", 7) == 0 || memcmp(line + i, "127.0.0", 7) == 0 ? 1 : 0;
    }
    return tries;
}

unsigned front_logged(const struct front *front, const char *key)
{
    char *text = read_file(front->log_path);
    char wanted[80];
    unsigned count = 0;
    (void) snprintf(wanted, sizeof wanted, "|%s", key);
    for (char *line = text; *line != '\0';) {
        size_t len = strcspn(line, "\n");
        size_t server = strcspn(line, "|\n");
        char saved = line[len];
        line[len] = '\0';
        if (strstr(line, wanted) != NULL) {
            count += tries_of(line, server);
        }
        line += len + (saved != '\0' ? 1 : 0);
    }
    free(text);
    return count;
}
