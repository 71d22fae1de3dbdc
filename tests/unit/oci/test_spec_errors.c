/* SPDX-License-Identifier: Apache-2.0 */
/* Bad configs: each names the JSON path and what was expected. */
#include "oci/spec.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Config text in single quotes, so that the tables stay readable. Return: length. */
static size_t unquote(char *text)
{
    for (char *p = text; *p; p++) {
        if (*p == '\'')
            *p = '"';
    }
    return strlen(text);
}

static void check(const char *json, const char *message)
{
    char text[4096];
    snprintf(text, sizeof(text), "%s", json);
    struct oci_spec *spec = NULL;
    struct errmsg e = {""};
    int r = oci_spec_parse(text, unquote(text), &spec, &e);
    cr_expect_eq(r, -EINVAL, "%s: got %d", json, r);
    cr_expect_null(spec);
    cr_expect_str_eq(e.text, message, "%s:\n  got  %s\n  want %s", json, e.text, message);
    oci_spec_free(spec);
}

struct bad {
    const char *part, *message;
};

/* Each part goes between two that make a config which is otherwise fine. */
static void check_parts(const char *before, const char *after, const struct bad *bad, unsigned len)
{
    for (unsigned i = 0; i < len; i++) {
        char text[4096];
        snprintf(text, sizeof(text), "%s%s%s", before, bad[i].part, after);
        check(text, bad[i].message);
    }
}
#define CHECK_PARTS(before, after, bad) check_parts(before, after, bad, ARRAY_SIZE(bad))

Test(spec_errors, top_level)
{
    check("[]", "top level: expected object, got array");
    check("", "line 1, column 1: premature EOF");
    check("{'ociVersion':'1.0.2'", "line 1, column 22: premature EOF");
    check("{}", "ociVersion: required field is missing");
    check("{'ociVersion':null}", "ociVersion: required field is missing");
    check("{'ociVersion':1}", "ociVersion: expected string, got number");
    check("{'ociVersion':''}", "ociVersion: must not be empty");
    check("{'ociVersion':'1.0'}", "ociVersion: expected a version such as \"1.2.0\", got \"1.0\"");
    check("{'ociVersion':'1.0.2x'}",
          "ociVersion: expected a version such as \"1.2.0\", got \"1.0.2x\"");
    check("{'ociVersion':'new'}", "ociVersion: expected a version such as \"1.2.0\", got \"new\"");
    check("{'ociVersion':'2.0.0'}", "ociVersion: unsupported version \"2.0.0\", expected 1.x");
    check("{'ociVersion':'0.9.1'}", "ociVersion: unsupported version \"0.9.1\", expected 1.x");
    check("{'ociVersion':'1.0.2'}", "process: required field is missing");
    check("{'ociVersion':'1.0.2','process':{'args':['a'],'cwd':'/'}}",
          "root: required field is missing");
    check("{'ociVersion':'1.0.2','process':[]}", "process: expected object, got array");
}

#define TOP "{'ociVersion':'1.0.2','process':{'args':['a'],'cwd':'/'},"

Test(spec_errors, sections)
{
    static const struct bad bad[] = {
        {"'root':'r'", "root: expected object, got string"},
        {"'root':{}", "root.path: required field is missing"},
        {"'root':{'path':''}", "root.path: must not be empty"},
        {"'root':{'path':'r','readonly':'yes'}", "root.readonly: expected boolean, got string"},
        {"'root':{'path':'r'},'hostname':1", "hostname: expected string, got number"},
        {"'root':{'path':'r'},'hostname':'h'",
         "hostname: unable to set without a private UTS namespace"},
        {"'root':{'path':'r'},'domainname':'h'",
         "domainname: unable to set without a private UTS namespace"},
        {"'root':{'path':'r'},'hostname':'"
         "0123456789012345678901234567890123456789012345678901234567890123456789'",
         "hostname: longer than 64 bytes"},
        {"'root':{'path':'r'},'annotations':[]", "annotations: expected object, got array"},
        {"'root':{'path':'r'},'annotations':{'a.b':1}",
         "annotations[\"a.b\"]: expected string, got number"},
        {"'root':{'path':'r'},'annotations':{'':'x'}", "annotations[\"\"]: name is empty"},
        {"'root':{'path':'r'},'linux':1", "linux: expected object, got number"},
        {"'root':{'path':'r'},'hooks':[]", "hooks: expected object, got array"},
        {"'root':{'path':'r\\u0000'}", "root.path: string holds a NUL byte"},
    };
    CHECK_PARTS(TOP, "}", bad);
}

Test(spec_errors, process)
{
    static const struct bad bad[] = {
        {"'cwd':'/'", "process.args: required field is missing"},
        {"'cwd':'/','args':[]", "process.args: must not be empty"},
        {"'cwd':'/','args':'sh'", "process.args: expected array, got string"},
        {"'cwd':'/','args':['sh',2]", "process.args[1]: expected string, got number"},
        {"'args':['sh']", "process.cwd: required field is missing"},
        {"'args':['sh'],'cwd':''", "process.cwd: must not be empty"},
        {"'args':['sh'],'cwd':'tmp'", "process.cwd: expected an absolute path, got \"tmp\""},
        {"'args':['sh'],'cwd':'/','terminal':1", "process.terminal: expected boolean, got number"},
        {"'args':['sh'],'cwd':'/','env':['A=1','B']",
         "process.env[1]: expected \"name=value\", got \"B\""},
        {"'args':['sh'],'cwd':'/','env':['=1']",
         "process.env[0]: expected \"name=value\", got \"=1\""},
        {"'args':['sh'],'cwd':'/','env':{}", "process.env: expected array, got object"},
        {"'args':['sh'],'cwd':'/','user':'root'", "process.user: expected object, got string"},
        {"'args':['sh'],'cwd':'/','user':{'uid':'0'}",
         "process.user.uid: expected unsigned integer, got string"},
        {"'args':['sh'],'cwd':'/','user':{'uid':-1}",
         "process.user.uid: expected unsigned integer, got -1"},
        {"'args':['sh'],'cwd':'/','user':{'gid':4294967296}",
         "process.user.gid: 4294967296 is out of range (0 to 4294967295)"},
        {"'args':['sh'],'cwd':'/','user':{'umask':512}",
         "process.user.umask: 512 is out of range (0 to 511)"},
        {"'args':['sh'],'cwd':'/','user':{'additionalGids':[1,1.5]}",
         "process.user.additionalGids[1]: expected unsigned integer, got 1.5"},
        {"'args':['sh'],'cwd':'/','consoleSize':{'width':80}",
         "process.consoleSize.height: required field is missing"},
        {"'args':['sh'],'cwd':'/','consoleSize':{'width':80,'height':70000}",
         "process.consoleSize.height: 70000 is out of range (0 to 65535)"},
        {"'args':['sh'],'cwd':'/','capabilities':{'bounding':'CAP_KILL'}",
         "process.capabilities.bounding: expected array, got string"},
        {"'args':['sh'],'cwd':'/','capabilities':{'ambient':[1]}",
         "process.capabilities.ambient[0]: expected string, got number"},
        {"'args':['sh'],'cwd':'/','rlimits':[{'soft':1,'hard':1}]",
         "process.rlimits[0].type: required field is missing"},
        {"'args':['sh'],'cwd':'/','rlimits':[{'type':'RLIMIT_FOO','soft':1,'hard':1}]",
         "process.rlimits[0].type: expected one of RLIMIT_AS, RLIMIT_CORE, RLIMIT_CPU, "
         "RLIMIT_DATA, "
         "RLIMIT_FSIZE, RLIMIT_LOCKS, RLIMIT_MEMLOCK, RLIMIT_MSGQUEUE, RLIMIT_NICE, RLIMIT_NOFILE, "
         "RLIMIT_NPROC, RLIMIT_RSS, RLIMIT_RTPRIO, RLIMIT_RTTIME, RLIMIT_SIGPENDING, RLIMIT_STACK, "
         "got "
         "\"RLIMIT_FOO\""},
        {"'args':['sh'],'cwd':'/','rlimits':[{'type':'RLIMIT_CPU','hard':1}]",
         "process.rlimits[0].soft: required field is missing"},
        {"'args':['sh'],'cwd':'/','rlimits':[{'type':'RLIMIT_CPU','soft':2,'hard':1}]",
         "process.rlimits[0]: soft limit 2 is above hard limit 1"},
        {"'args':['sh'],'cwd':'/','rlimits':[{'type':'RLIMIT_CPU','soft':1,'hard':1},"
         "{'type':'RLIMIT_CPU','soft':1,'hard':1}]",
         "process.rlimits[1]: RLIMIT_CPU is listed twice"},
        {"'args':['sh'],'cwd':'/','oomScoreAdj':1001",
         "process.oomScoreAdj: 1001 is out of range (-1000 to 1000)"},
        {"'args':['sh'],'cwd':'/','oomScoreAdj':'x'",
         "process.oomScoreAdj: expected integer, got string"},
        {"'args':['sh'],'cwd':'/','ioPriority':{'priority':1}",
         "process.ioPriority.class: required field is missing"},
        {"'args':['sh'],'cwd':'/','ioPriority':{'class':'IOPRIO_CLASS_X'}",
         "process.ioPriority.class: expected one of IOPRIO_CLASS_RT, IOPRIO_CLASS_BE, "
         "IOPRIO_CLASS_IDLE, "
         "got \"IOPRIO_CLASS_X\""},
        {"'args':['sh'],'cwd':'/','ioPriority':{'class':'IOPRIO_CLASS_BE','priority':8}",
         "process.ioPriority.priority: 8 is out of range (0 to 7)"},
        {"'args':['sh'],'cwd':'/','scheduler':{}",
         "process.scheduler.policy: required field is missing"},
        {"'args':['sh'],'cwd':'/','scheduler':{'policy':'SCHED_BATCH','priority':1}",
         "process.scheduler.priority: only for SCHED_FIFO and SCHED_RR"},
        {"'args':['sh'],'cwd':'/','scheduler':{'policy':'SCHED_OTHER','nice':20}",
         "process.scheduler.nice: 20 is out of range (-20 to 19)"},
        {"'args':['sh'],'cwd':'/','scheduler':{'policy':'SCHED_FIFO','runtime':5}",
         "process.scheduler: runtime, deadline and period are only for SCHED_DEADLINE"},
        {"'args':['sh'],'cwd':'/','scheduler':{'policy':'SCHED_FIFO','flags':['X']}",
         "process.scheduler.flags[0]: expected one of SCHED_FLAG_RESET_ON_FORK, "
         "SCHED_FLAG_RECLAIM, "
         "SCHED_FLAG_DL_OVERRUN, SCHED_FLAG_KEEP_POLICY, SCHED_FLAG_KEEP_PARAMS, "
         "SCHED_FLAG_UTIL_CLAMP_MIN, SCHED_FLAG_UTIL_CLAMP_MAX, got \"X\""},
        {"'args':['sh'],'cwd':'/','execCPUAffinity':{'initial':'all'}",
         "process.execCPUAffinity.initial: expected a list of CPUs such as \"0-3,7\", got \"all\""},
    };
    CHECK_PARTS("{'ociVersion':'1.0.2','root':{'path':'r'},'process':{", "}}", bad);
}

#define FINE "{'ociVersion':'1.0.2','root':{'path':'r'},'process':{'args':['a'],'cwd':'/'},"

Test(spec_errors, mounts)
{
    static const struct bad bad[] = {
        {"{}", "mounts: expected array, got object"},
        {"[1]", "mounts[0]: expected object, got number"},
        {"[{'type':'proc'}]", "mounts[0].destination: required field is missing"},
        {"[{'destination':''}]", "mounts[0].destination: must not be empty"},
        {"[{'destination':'/a'},{'destination':'/b','options':'ro'}]",
         "mounts[1].options: expected array, got string"},
        {"[{'destination':'/a','options':[1]}]",
         "mounts[0].options[0]: expected string, got number"},
        {"[{'destination':'/a','type':'bind'}]", "mounts[0]: a bind mount needs a source"},
        {"[{'destination':'/a','options':['rbind']}]", "mounts[0]: a bind mount needs a source"},
        {"[{'destination':'/a','type':'tmpfs','options':['idmap']}]",
         "mounts[0]: only bind mounts can be idmapped"},
        {"[{'destination':'/a','type':'bind','source':'/s',"
         "'uidMappings':[{'containerID':0,'hostID':1,'size':1}]}]",
         "mounts[0]: needs both uidMappings and gidMappings"},
        {"[{'destination':'/a','uidMappings':[{'containerID':0,'hostID':1}]}]",
         "mounts[0].uidMappings[0].size: required field is missing"},
    };
    CHECK_PARTS(FINE "'mounts':", "}", bad);
}

Test(spec_errors, hooks)
{
    static const struct bad bad[] = {
        {"'prestart':{}", "hooks.prestart: expected array, got object"},
        {"'createRuntime':[{}]", "hooks.createRuntime[0].path: required field is missing"},
        {"'poststop':[{'path':'bin/x'}]",
         "hooks.poststop[0].path: expected an absolute path, got \"bin/x\""},
        {"'poststart':[{'path':'/x','timeout':0}]",
         "hooks.poststart[0].timeout: 0 is out of range (1 to 2147483647)"},
        {"'startContainer':[{'path':'/x','args':[null]}]",
         "hooks.startContainer[0].args[0]: expected string, got null"},
        {"'createContainer':[{'path':'/x','env':1}]",
         "hooks.createContainer[0].env: expected array, got number"},
    };
    CHECK_PARTS(FINE "'hooks':{", "}}", bad);
}

Test(spec_errors, linux_section)
{
    static const struct bad bad[] = {
        {"'namespaces':[{}]", "linux.namespaces[0].type: required field is missing"},
        {"'namespaces':[{'type':'net'}]", "linux.namespaces[0].type: expected one of pid, network, "
                                          "mount, ipc, uts, user, cgroup, time, got "
                                          "\"net\""},
        {"'namespaces':[{'type':'pid'},{'type':'pid','path':'/proc/1/ns/pid'}]",
         "linux.namespaces[1]: namespace \"pid\" is listed twice"},
        {"'namespaces':[{'type':'pid','path':'ns'}]",
         "linux.namespaces[0].path: expected an absolute path, got \"ns\""},
        {"'uidMappings':[{'containerID':0,'hostID':0,'size':1}]",
         "linux.uidMappings: user namespace mappings need a user namespace"},
        {"'namespaces':[{'type':'user'}]",
         "linux.uidMappings: a new user namespace needs mappings"},
        {"'namespaces':[{'type':'user'}],'uidMappings':[{'containerID':0,'hostID':0,'size':1}]",
         "linux.gidMappings: a new user namespace needs mappings"},
        {"'namespaces':[{'type':'user'}],'gidMappings':[{'containerID':0,'hostID':0,'size':1}],"
         "'uidMappings':[{'containerID':0,'hostID':0,'size':0}]",
         "linux.uidMappings[0].size: must not be 0"},
        {"'namespaces':[{'type':'user'}],'gidMappings':[{'containerID':0,'hostID':0,'size':1}],"
         "'uidMappings':[{'containerID':0,'hostID':0,'size':5},{'containerID':4,'hostID':9,'size':"
         "1}]",
         "linux.uidMappings[1]: overlaps linux.uidMappings[0]"},
        {"'namespaces':[{'type':'user'}],'gidMappings':[{'containerID':0,'hostID':0,'size':1}],"
         "'uidMappings':[{'containerID':4294967290,'hostID':0,'size':100}]",
         "linux.uidMappings[0]: goes beyond the last id"},
        {"'maskedPaths':['/proc/kcore']",
         "linux.maskedPaths: unable to restrict paths without a private mount namespace"},
        {"'readonlyPaths':['proc/sys']",
         "linux.readonlyPaths[0]: expected an absolute path, got \"proc/sys\""},
        {"'sysctl':{'kernel.panic':'1'}",
         "linux.sysctl[\"kernel.panic\"]: not in a separate kernel namespace"},
        {"'sysctl':{'net.a\\nb':'1'}", "linux.sysctl: a name holds a space or control character"},
        {"'cgroupsPath':'/a','rootfsPropagation':'a\\nb'",
         "linux.rootfsPropagation: expected one of shared, rshared, slave, rslave, private, "
         "rprivate, "
         "unbindable, runbindable, got \"a?b\""},
        {"'sysctl':{'net.ipv4.ip_forward':'1'}",
         "linux.sysctl[\"net.ipv4.ip_forward\"]: not allowed in the host's network namespace"},
        {"'sysctl':{'net/ipv4/ip_forward':'1'}",
         "linux.sysctl[\"net/ipv4/ip_forward\"]: not allowed in the host's network namespace"},
        {"'namespaces':[{'type':'network'}],'sysctl':{'net/../kernel/panic':'1'}",
         "linux.sysctl[\"net/../kernel/panic\"]: not in a separate kernel namespace"},
        {"'namespaces':[{'type':'uts'}],'sysctl':{'kernel.hostname':'1'}",
         "linux.sysctl[\"kernel.hostname\"]: conflicts with hostname"},
        {"'sysctl':{'kernel.shmmax':1}",
         "linux.sysctl[\"kernel.shmmax\"]: expected string, got number"},
        {"'devices':[{'type':'c','major':1,'minor':3}]",
         "linux.devices[0].path: required field is missing"},
        {"'devices':[{'path':'null','type':'c','major':1,'minor':3}]",
         "linux.devices[0].path: expected an absolute path, got \"null\""},
        {"'devices':[{'path':'/dev/null'}]", "linux.devices[0].type: required field is missing"},
        {"'devices':[{'path':'/dev/null','type':'x'}]",
         "linux.devices[0].type: expected one of the letters bcup, got \"x\""},
        {"'devices':[{'path':'/dev/null','type':'c','major':1}]",
         "linux.devices[0].minor: required field is missing"},
        {"'devices':[{'path':'/dev/null','type':'c','major':-1,'minor':0}]",
         "linux.devices[0].major: -1 is out of range (0 to 4294967295)"},
        {"'rootfsPropagation':'none'", "linux.rootfsPropagation: expected one of shared, rshared, "
                                       "slave, rslave, private, rprivate, "
                                       "unbindable, runbindable, got \"none\""},
        {"'personality':{'domain':'BSD'}",
         "linux.personality.domain: expected one of LINUX, LINUX32, got \"BSD\""},
        {"'personality':{'domain':'LINUX','flags':['X']}",
         "linux.personality.flags: no flag is supported"},
        {"'personality':{}", "linux.personality.domain: required field is missing"},
        {"'timeOffsets':{'realtime':{'secs':1}}",
         "linux.timeOffsets.realtime: unknown clock, expected monotonic or boottime"},
        {"'timeOffsets':{'monotonic':{'nanosecs':1000000000}}",
         "linux.timeOffsets.monotonic.nanosecs: 1000000000 is out of range (0 to 999999999)"},
        {"'timeOffsets':{'monotonic':{'secs':1}}", "linux.timeOffsets: need a new time namespace"},
        {"'namespaces':[{'type':'time','path':'/x'}]", "linux.namespaces: /x: a time namespace of the host can't be joined"},
        {"'intelRdt':{'enableCMT':1}", "linux.intelRdt.enableCMT: expected boolean, got number"},
        {"'mountLabel':{}", "linux.mountLabel: expected string, got object"},
        {"'cgroupsPath':[]", "linux.cgroupsPath: expected string, got array"},
    };
    CHECK_PARTS(FINE "'linux':{", "}}", bad);
}

Test(spec_errors, resources)
{
    static const struct bad bad[] = {
        {"'memory':{'limit':'1G'}", "linux.resources.memory.limit: expected integer, got string"},
        {"'memory':{'swappiness':-1}",
         "linux.resources.memory.swappiness: expected unsigned integer, got -1"},
        {"'memory':{'disableOOMKiller':0}",
         "linux.resources.memory.disableOOMKiller: expected boolean, got number"},
        {"'cpu':{'shares':1.5}", "linux.resources.cpu.shares: expected unsigned integer, got 1.5"},
        {"'cpu':{'quota':9223372036854775808}",
         "linux.resources.cpu.quota: 9223372036854775808 is out of range (-9223372036854775808 to "
         "9223372036854775807)"},
        {"'cpu':{'cpus':3}", "linux.resources.cpu.cpus: expected string, got number"},
        {"'pids':5", "linux.resources.pids: expected object, got number"},
        {"'pids':{'limit':null,'x':1},'blockIO':{'weight':65536}",
         "linux.resources.blockIO.weight: 65536 is out of range (0 to 65535)"},
        {"'blockIO':{'throttleReadBpsDevice':[{'major':8,'minor':0}]}",
         "linux.resources.blockIO.throttleReadBpsDevice[0].rate: required field is missing"},
        {"'devices':[{'allow':true,'type':'u'}]",
         "linux.resources.devices[0].type: expected one of a, b, c, got \"u\""},
        {"'devices':[{'allow':true,'access':'rwx'}]",
         "linux.resources.devices[0].access: expected letters out of rwm, got \"rwx\""},
        {"'hugepageLimits':[{'pageSize':'../x','limit':1}]",
         "linux.resources.hugepageLimits[0].pageSize: expected a size such as \"2MB\", got "
         "\"../x\""},
        {"'hugepageLimits':[{'pageSize':'2MB'}]",
         "linux.resources.hugepageLimits[0].limit: required field is missing"},
        {"'network':{'classID':4294967296}",
         "linux.resources.network.classID: 4294967296 is out of range (0 to 4294967295)"},
        {"'network':{'priorities':[{'name':'eth0'}]}",
         "linux.resources.network.priorities[0].priority: required field is missing"},
        {"'rdma':{'mlx5_1':{'hcaHandles':'x'}}",
         "linux.resources.rdma.mlx5_1.hcaHandles: expected unsigned integer, got string"},
        {"'unified':{'memory.high':1}",
         "linux.resources.unified[\"memory.high\"]: expected string, got number"},
        {"'unified':{'../cgroup.procs':'1'}",
         "linux.resources.unified[\"../cgroup.procs\"]: expected the name of a cgroup file"},
    };
    CHECK_PARTS(FINE "'linux':{'resources':{", "}}}", bad);
}

Test(spec_errors, seccomp)
{
    static const struct bad bad[] = {
        {"", "linux.seccomp.defaultAction: required field is missing"},
        {"'defaultAction':'ALLOW'",
         "linux.seccomp.defaultAction: expected one of SCMP_ACT_KILL, SCMP_ACT_KILL_PROCESS, "
         "SCMP_ACT_KILL_THREAD, SCMP_ACT_TRAP, SCMP_ACT_ERRNO, SCMP_ACT_TRACE, SCMP_ACT_ALLOW, "
         "SCMP_ACT_LOG, SCMP_ACT_NOTIFY, got \"ALLOW\""},
        {"'defaultAction':'SCMP_ACT_NOTIFY'",
         "linux.seccomp.defaultAction: SCMP_ACT_NOTIFY is not allowed here"},
        {"'defaultAction':'SCMP_ACT_ERRNO','syscalls':[{'action':'SCMP_ACT_ALLOW'}]",
         "linux.seccomp.syscalls[0].names: required field is missing"},
        {"'defaultAction':'SCMP_ACT_ERRNO','syscalls':[{'names':[],'action':'SCMP_ACT_ALLOW'}]",
         "linux.seccomp.syscalls[0].names: must not be empty"},
        {"'defaultAction':'SCMP_ACT_ERRNO','syscalls':[{'names':['read'],'action':'SCMP_ACT_NOTIFY'"
         "}]",
         "linux.seccomp.syscalls[0].action: SCMP_ACT_NOTIFY needs listenerPath"},
        {"'defaultAction':'SCMP_ACT_ERRNO','syscalls':[{'names':['read'],'action':'SCMP_ACT_ALLOW',"
         "'args':[{'index':6,'value':0,'op':'SCMP_CMP_EQ'}]}]",
         "linux.seccomp.syscalls[0].args[0].index: 6 is out of range (0 to 5)"},
        {"'defaultAction':'SCMP_ACT_ERRNO','syscalls':[{'names':['read'],'action':'SCMP_ACT_ALLOW',"
         "'args':[{'index':0,'value':0,'op':'=='}]}]",
         "linux.seccomp.syscalls[0].args[0].op: expected one of SCMP_CMP_NE, SCMP_CMP_LT, "
         "SCMP_CMP_LE, "
         "SCMP_CMP_EQ, SCMP_CMP_GE, SCMP_CMP_GT, SCMP_CMP_MASKED_EQ, got \"==\""},
        {"'defaultAction':'SCMP_ACT_ALLOW','listenerMetadata':'x'",
         "linux.seccomp.listenerMetadata: needs listenerPath"},
        {"'defaultAction':'SCMP_ACT_ALLOW','flags':['X']",
         "linux.seccomp.flags[0]: expected one of SECCOMP_FILTER_FLAG_TSYNC, "
         "SECCOMP_FILTER_FLAG_LOG, "
         "SECCOMP_FILTER_FLAG_SPEC_ALLOW, SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, got \"X\""},
    };
    CHECK_PARTS(FINE "'linux':{'seccomp':{", "}}}", bad);
    char text[] =
        FINE "'linux':{'seccomp':{'defaultAction':'SCMP_ACT_ALLOW','architectures':['VAX']}}}";
    struct oci_spec *spec = NULL;
    struct errmsg e = {""};
    cr_assert_eq(oci_spec_parse(text, unquote(text), &spec, &e), -EINVAL);
    cr_assert(strstr(e.text, "linux.seccomp.architectures[0]: expected one of SCMP_ARCH_X86, "),
              "%s", e.text);
    cr_assert(strstr(e.text, ", got \"VAX\""), "%s", e.text);
}

Test(spec_errors, bare_documents)
{
    char process[] = "{'args':['a'],'cwd':'x'}";
    struct oci_process_doc *p = NULL;
    struct errmsg e = {""};
    cr_assert_eq(oci_process_parse(process, unquote(process), &p, &e), -EINVAL);
    cr_assert_str_eq(e.text, "process.cwd: expected an absolute path, got \"x\"");
    cr_assert_null(p);
    char resources[] = "{'memory':{'limit':true}}";
    struct oci_resources_doc *r = NULL;
    cr_assert_eq(oci_resources_parse(resources, unquote(resources), &r, &e), -EINVAL);
    cr_assert_str_eq(e.text, "resources.memory.limit: expected integer, got boolean");
    cr_assert_null(r);
    cr_assert_eq(oci_resources_parse("5", 1, &r, NULL), -EINVAL, "the message is optional");
}
