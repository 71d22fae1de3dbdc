# SPDX-License-Identifier: Apache-2.0
"""What the differential test runs: ordinary programs with deterministic output, by group.

A case is (name, script) or (name, script, options): a bash script, run in a scratch directory that is a mount of a host
directory. Options: 'sub': [(regex, replacement)] applied to both outputs, 'needs': programs without which the case is skipped,
'argv': run this instead of bash -c, 'stdin': text, 'timeout': seconds, 'unordered': lines may come in any order, 'native': a regex
that runc's output has where the machine can run the case at all, 'caps': more capabilities for the container."""

SHELL = [
    ('echo', 'echo hello; echo err >&2'),
    ('exit-42', 'exit 42'),
    ('arithmetic', 'for ((i=0;i<5;i++)); do echo $((i*i)); done'),
    ('pipeline', 'seq 1000 | sort -rn | head -5 | tr 0-9 a-j'),
    ('pipe-status', 'set -o pipefail; false | true; echo $?; true | false | true; echo ${PIPESTATUS[@]}'),
    ('subshells', 'x=$(echo a; (echo b; (echo c))); echo "$x"; (cd /; pwd); pwd | sed s,.*/,,'),
    ('here-document', 'cat <<E\n$((1+2))\nE\ncat <<\'E\'\n$HOME\nE\nread -r a b <<<"x y z"; echo "$a-$b"'),
    ('process-substitution', 'diff <(seq 3) <(seq 4); echo $?; cat <(echo one) <(echo two)'),
    ('traps', 'trap "echo usr1" USR1; trap "echo bye" EXIT; kill -USR1 $$; trap "echo term; exit 3" TERM; kill $$; echo no'),
    ('trap-in-wait', 'trap "echo got" USR1; (sleep 0.2; kill -USR1 $$) & wait $!; echo $?; wait; echo done'),
    ('background', 'for i in 1 2 3; do (sleep 0.$i; echo $i) & done; wait; jobs; echo end'),
    ('wait-status', 'sh -c "exit 7" & wait $!; echo $?; sh -c "kill -9 \\$\\$" & wait $!; echo $?'),
    ('job-control', 'set -m; sleep 5 & kill -STOP %1; sleep 0.2; jobs | tr -s " "; kill %1; kill -CONT %1 2>/dev/null; wait %1; echo $?'),
    ('signals-kill', 'bash -c "kill -SEGV \\$\\$"; echo $?; bash -c "kill -TERM \\$\\$"; echo $?'),
    ('killed-by-signal', 'kill -KILL $$'),
    ('terminated', 'kill -TERM $$'),
    ('not-found', 'nosuchprogram; echo $?; ./missing; echo $?; touch plain; ./plain; echo $?; /; echo $?'),
    ('redirections', 'echo a >f; echo b >>f; cat <f; { echo out; echo err >&2; } >both 2>&1; cat both; exec 5<f; read x <&5; echo $x; : > f; wc -c <f'),
    ('noclobber', 'set -C; echo a >f; echo b >f; echo $?'),
    ('globs', 'mkdir d; touch d/{a,b,c}.txt d/.hidden; echo d/*; echo d/[ab]*; shopt -s dotglob; echo d/*; echo d/nothing*'),
    ('arrays', 'declare -A m=([a]=1 [b]=2); for k in a b; do echo $k=${m[$k]}; done; a=(x y z); echo ${#a[@]} ${a[-1]}'),
    ('string-operators', 's=/a/b/file.tar.gz; echo ${s##*/} ${s%%.*} ${s/b/B} ${s^^} ${#s}'),
    ('functions', 'f() { local x=$1; ((x<=1)) && echo 1 || echo $((x * $(f $((x-1))))); }; f 6'),
    ('coprocess', 'coproc cat; echo hi >&${COPROC[1]}; read -r x <&${COPROC[0]}; echo $x'),
    ('timeout', 'timeout 0.3 sleep 5; echo $?; timeout -s KILL 0.3 sleep 5; echo $?; timeout 5 true; echo $?'),
    ('ulimit', 'ulimit -n; ulimit -n 64; ulimit -n; ulimit -c'),
    ('environment', 'env -i A=1 B=2 env | sort; unset PATH; /bin/true; echo $?'),
    ('identity', 'id; whoami; hostname; pwd | sed s,.*/,,; umask; tty; echo $?'),
    ('proc-self', 'cat /proc/self/comm; readlink /proc/self/exe; ls /proc/self/fd | wc -l; tr "\\0" " " </proc/self/cmdline; echo'),
    ('sigpipe', 'yes | head -3; echo ${PIPESTATUS[0]}; cat /dev/urandom | fold -w 32 | head -n 1 | wc -l'),
    ('pipefail-null', 'set -o pipefail; for i in $(seq 30); do seq 1 5 | grep 5 >/dev/null || echo bad; done; echo $?'),
    ('dash', 'dash -c \'i=0; while [ $i -lt 3 ]; do echo $i; i=$((i+1)); done; x=$(echo sub); echo $x; kill -9 $$\'; echo $?'),
    ('many-forks', 'for ((i=0;i<300;i++)); do /bin/true || echo bad; done; x=0; for ((i=0;i<100;i++)); do x=$((x+$(echo $i))); done; echo $x'),
    ('fds-high', 'exec 200>f; echo x >&200; cat f; exec 200>&-; echo y >&200; echo $?'),
    ('read-timeout', 'read -t 0.2 x < <(sleep 1); echo $? $x'),
    ('exec-replaces', 'exec echo replaced; echo no'),
    ('stdin', 'while read -r l; do echo "<$l>"; done; echo $?', {'stdin': 'one\ntwo\nthree'}),
    ('mkfifo', 'mkfifo p; (echo through >p) & cat p; wait'),
    ('flock', 'flock f sh -c "echo held; ! flock -n f true; echo \\$?"; flock -n f true; echo $?'),
    ('nohup-setsid', 'setsid -w sh -c "echo \\$((\\$(ps -o sid= -p \\$\\$)==\\$\\$))"'),
    ('time-keyword', 'TIMEFORMAT=%R; { time sleep 0.1; } 2>&1 | cut -c1-3'),
]

COREUTILS = [
    ('ls', 'mkdir d; touch d/a; ln -s a d/l; mkdir d/s; chmod 640 d/a; chown 3:4 d/a; ls -ln --time-style=+ d; ls -a d; ls missing; echo $?'),
    ('stat', 'echo x >f; chmod 4751 f; stat -c "%n %s %a %A %h %u %g %F" f /dev/null /tmp /proc/self; ln f g; stat -c %h f g'),
    ('dir-links', 'mkdir -p d/{1,2,3}; stat -c %h d; touch d/f; stat -c %h d'),
    ('cp-mv-rm', 'mkdir -p a/b/c; echo 1 >a/b/c/f; ln -s f a/b/c/l; cp -a a z; mv a y; rm -r y; find z | sort; cat z/b/c/l'),
    ('cp-preserve', 'echo x >f; touch -d "2001-02-03 04:05:06" f; chmod 600 f; cp -p f g; stat -c "%y %a" f g'),
    ('touch-times', 'touch -d @100.123456789 f; stat -c "%x %y" f; touch -r f g; stat -c %y g; touch -a -d @5 f; stat -c "%X %Y" f'),
    ('dd', 'dd if=/dev/zero of=f bs=1k count=100 2>/dev/null; wc -c f; dd if=f of=g bs=7k skip=1 seek=3 conv=notrunc 2>/dev/null; wc -c g; truncate -s 5M f; stat -c %s f'),
    ('sparse', 'truncate -s 1G f; stat -c "%s %b" f; echo x | dd of=f bs=1 seek=500M conv=notrunc 2>/dev/null; [ $(stat -c %b f) -lt 1000 ]; echo $?; fallocate -l 1M g; stat -c "%s %b" g; fallocate -p -o 0 -l 512k g; stat -c "%s %b" g'),
    ('sort-uniq', 'seq 20000 | shuf --random-source=/bin/bash | sort -n | md5sum; printf "b\\na\\nb\\n" | sort | uniq -c; sort -S 1M <(seq 200000) | tail -1'),
    ('text', 'printf "a:b:c\\n1:2:3\\n" | cut -d: -f2; seq 5 | paste -sd+; seq 3 | tac; echo abc | rev; fold -w3 <<<abcdef; nl <(seq 2); expand <<<"a\tb"; join <(echo "1 a") <(echo "1 b"); comm <(seq 3) <(seq 2 4); tr a-z A-Z <<<x; od -c <<<hi; head -c 3 <<<abcdef; echo; tail -n +2 <(seq 3)'),
    ('checksums', 'seq 10000 >f; md5sum f; sha1sum f; sha256sum f; cksum f; b2sum f; sha256sum f >s; sha256sum -c s'),
    ('base64', 'head -c 1000 /bin/bash | base64 | md5sum; echo aGVsbG8K | base64 -d'),
    ('find', 'mkdir -p d/{a,b}/{c,e}; touch d/a/c/1.txt d/b/e/2.log; find d -name "*.txt"; find d -type d | sort; find d -empty | sort; find d -newer d/a -name x; find d -type f -exec wc -c {} + | sort; find d -depth -delete; ls d; echo $?'),
    ('xargs', 'seq 10 | xargs -n3 echo; seq 4 | xargs -P2 -I{} sh -c "echo {}" | sort; printf "a b\\0c\\0" | xargs -0 -n1 echo; echo | xargs false; echo $?'),
    ('grep', 'seq 100 >f; grep -c 1 f; grep -E "^(1|2)0?$" f; grep -n 99 f; grep -v . f; echo $?; grep x missing; echo $?; mkdir d; cp f d; grep -rl 42 d; grep -o "[0-9]$" f | sort -u | wc -l'),
    ('sed', 'seq 10 | sed -n "2,4p;s/9/nine/p"; printf "a\\nb\\n" >f; sed -i s/a/x/ f; cat f; sed "1!G;h;\\$!d" f; sed -i.bak s/b/y/ f; ls f*'),
    ('awk', 'seq 100 | awk "{s+=\\$1} END {print s, NR}"; awk -F: "{print \\$1}" /etc/passwd | head -3; awk "BEGIN {while ((\\"seq 3\\" | getline x) > 0) print x; print strftime(\\"%Y\\", 0); printf \\"%.3f\\n\\", 3.14159}"'),
    ('tar', 'mkdir -p d/s; seq 100 >d/f; ln d/f d/h; ln -s f d/l; chmod 600 d/f; tar cf t.tar d; tar tf t.tar | sort; mkdir x; tar xf t.tar -C x; diff -r d x/d; stat -c "%a %h" x/d/f; tar czf t.gz --sort=name d; tar xzf t.gz -O d/f | md5sum'),
    ('many-files', 'mkdir d; for i in $(seq 1000); do echo $i >d/$i; done; ls d | wc -l; cat d/* | md5sum; ls -U d | sort -n | tail -1; rm -r d; ls'),
    ('deep-tree', 'p=.; for i in $(seq 100); do p=$p/d; mkdir $p; done; echo x >$p/f; find . -name f | wc -c; cat $p/f; rm -r d; ls -A'),
    ('long-name', 'n=$(printf "n%.0s" $(seq 255)); touch $n; ls | wc -c; touch ${n}x; echo $?'),
    ('links', 'echo x >f; ln f g; ln -s f l; ln -s missing d; readlink l d; cat d; echo $?; readlink -f l | sed s,.*/,,; ln -sf g l; readlink l; ln f g; echo $?; realpath -e missing; echo $?; ln -s l l2; [ l2 -ef f ]; echo $?'),
    ('permissions', 'echo secret >f; chmod 600 f; chmod 755 .; setpriv --reuid 1234 --regid 1234 --clear-groups cat f; echo $?; setpriv --reuid 1234 --regid 1234 --clear-groups touch new; echo $?; [ -w f ]; echo $?; setpriv --reuid 1234 --regid 1234 --clear-groups test -r f; echo $?'),
    ('mktemp', 'f=$(mktemp -p .); [ -f $f ]; echo $?; stat -c %a $f; d=$(mktemp -d -p .); stat -c %a $d'),
    ('install-chmod', 'echo x >f; install -m 751 -D f a/b/c; stat -c %a a/b/c; chmod -R u=rwX,go= a; stat -c %a a a/b/c; chmod +t a; stat -c %A a'),
    ('df-du', 'truncate -s 3M f; du -b f | cut -f1; du --apparent-size -k f | cut -f1; df . >/dev/null; echo $?; df --output=fstype /proc /dev | tail -2'),
    ('split-cat', 'seq 5000 >f; split -n 4 f part; cat part* | cmp - f; echo $?; split -l 1000 f l; ls l* | wc -l; csplit -s f 100; wc -l xx00'),
    ('tee-append', 'seq 3 | tee a b | tail -1; echo 4 | tee -a a; cat a'),
    ('date', 'date -u -d @0; date -d "2020-02-29 +1 year" +%F; TZ=Asia/Tokyo date -d @86400 +%T'),
    ('numfmt-etc', 'numfmt --to=iec 1048576; factor 97 100; expr 6 \\* 7; printf "%05d|%-5s|%x\\n" 42 ab 255; seq -s, 5; test 3 -gt 2; echo $?'),
    ('env-nice', 'nice -n 5 nice; nice; nohup true; echo $?; stdbuf -oL echo x; env X=1 sh -c "echo \\$X"'),
    ('sync-shred', 'echo x >f; sync; sync f; shred -u f; ls'),
    ('xattr', 'touch f; setfattr -n user.a -v 1 f && getfattr --only-values -n user.a f; echo $?', {'needs': ['setfattr']}),
    ('mounts', 'grep -c . /proc/mounts >/dev/null; echo $?; findmnt -n -o FSTYPE /proc; findmnt -n -o FSTYPE /dev; mountpoint /proc; mountpoint /etc; echo $?'),
    ('devices', 'ls -l /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty /dev/ptmx | sed "s/ [A-Z][a-z][a-z] .*:.. / /"; echo x >/dev/full; echo $?; head -c 5 /dev/zero | od -An -c; readlink /dev/fd /dev/stdin', {'sub': [(r'root +\w+ +', 'root ')]}),
    ('rename-over', 'echo a >a; echo b >b; exec 3<b; mv a b; cat b; cat <&3; mkdir d; mv d b; echo $?; mv -T d b; echo $?'),
    ('unlink-open', 'exec 3<>f; echo hello >&3; rm f; ls; readlink /proc/self/fd/3 | sed "s,.*/,,"; cat /proc/self/fd/3', {}),
    ('cmp-diff', 'seq 5 >a; seq 6 >b; cmp a b; echo $?; diff -u --label a --label b a b; diff3 a b a; patch a < <(diff -u a b); cmp a b', {'needs': ['patch']}),
    ('lsof-free', 'ps -e -o comm= | sort -u; ps -o pid=,ppid=,stat= -p 1 | tr -s " "', {'sub': [(r'S[s+]*', 'S'), (r'R[+]?', 'R')]}),
]

PERL = [
    ('perl-basics', 'perl -e \'my %h=(a=>1,b=>2); print join(",",map {"$_$h{$_}"} sort keys %h),"\\n"; print "ok\\n" if "foobar"=~/o+b/; printf "%.2f\\n", sqrt 2\''),
    ('perl-fork', 'perl -e \'$|=1; my $p=fork; if(!$p){exit 5} waitpid($p,0); print $?>>8,"\\n"; open my $f,"-|","echo piped" or die; print <$f>; close $f; $SIG{USR1}=sub{print "sig\\n"}; kill USR1=>$$; my $r=eval{local $SIG{ALRM}=sub{die "alarm\\n"}; alarm 1; select undef,undef,undef,5; 1}; print $@\''),
    ('perl-files', 'perl -MFile::Find -MFile::Temp=tempdir -MFcntl=:flock -e \'my $d=tempdir(CLEANUP=>1); open my $f,">","$d/x"; flock $f,LOCK_EX; print $f "data"; close $f; find(sub{print "$_\\n" if -f}, $d); print -s "$d/x","\\n"; print join(",",sort map{s,.*/,,r} glob "/etc/pass*"),"\\n"\''),
    ('perl-sockets', 'perl -MIO::Socket::UNIX -e \'my $s=IO::Socket::UNIX->new(Local=>"s",Listen=>1); if(!fork){my $c=IO::Socket::UNIX->new(Peer=>"s"); print $c "hi\\n"; exit} my $c=$s->accept; print <$c>; wait\''),
]

PYTHON = [
    ('version', 'python3 -c "import sys,platform; print(sys.version_info[:2], platform.machine(), platform.system())"'),
    ('imports', 'python3 -c "import json,asyncio,ssl,sqlite3,subprocess,threading,multiprocessing,ctypes,socket,select,mmap,signal,hashlib,zlib,lzma,bz2,decimal,xml.etree.ElementTree,http.client,urllib.request,email,csv,logging,tempfile,shutil,curses,readline,pty,fcntl,resource,pwd,grp; print(ssl.OPENSSL_VERSION[:7])"'),
    ('threads', 'python3 -c "\nimport threading,queue\nq=queue.Queue(8)\ndef prod():\n  for i in range(5000): q.put(i)\nt=threading.Thread(target=prod); t.start(); s=sum(q.get() for _ in range(5000)); t.join(); print(s)\nl=threading.Lock(); n=0\ndef w():\n  global n\n  for _ in range(1000):\n    with l: n+=1\nts=[threading.Thread(target=w) for _ in range(8)]; [t.start() for t in ts]; [t.join() for t in ts]; print(n)\nprint(threading.Event().wait(0.1))"'),
    ('subprocess', 'python3 -c "\nimport subprocess as s\nprint(s.run([\'echo\',\'x\'],capture_output=True).stdout)\nprint(s.run(\'exit 3\',shell=True).returncode, s.run([\'sh\',\'-c\',\'kill -9 $$\']).returncode)\np=s.Popen([\'cat\'],stdin=s.PIPE,stdout=s.PIPE); print(p.communicate(b\'data\'*10000)[0]==b\'data\'*10000)\ntry: s.run([\'sleep\',\'5\'],timeout=0.3)\nexcept s.TimeoutExpired: print(\'timeout\')\ntry: s.run([\'/nonexistent\'])\nexcept FileNotFoundError as e: print(e)\nfor i in range(50): s.run([\'/bin/true\'],check=True)\nprint(s.check_output([\'sh\',\'-c\',\'echo out; echo err >&2\'],stderr=s.STDOUT))"'),
    ('multiprocessing', 'python3 -c "\nimport multiprocessing as m\ndef f(x): return x*x\nif __name__==\'__main__\':\n  with m.Pool(4) as p: print(sum(p.map(f,range(500))))\n  q=m.Queue(); p=m.Process(target=q.put,args=(5,)); p.start(); print(q.get()); p.join(); print(p.exitcode)\n  v=m.Value(\'i\',0); l=m.Lock()\n  a,b=m.Pipe(); a.send([1,2]); print(b.recv())\n  m.set_start_method(\'spawn\',force=True)"'),
    ('multiprocessing-spawn', 'cat >s.py <<E\nimport multiprocessing as m\ndef f(x): return x+1\nif __name__=="__main__":\n    c=m.get_context("spawn")\n    with c.Pool(2) as p: print(p.map(f,[1,2,3]))\n    c=m.get_context("forkserver")\n    with c.Pool(2) as p: print(p.map(f,[4,5]))\nE\npython3 s.py'),
    ('shared-memory', 'python3 -c "\nfrom multiprocessing import shared_memory as s\na=s.SharedMemory(create=True,size=1000); a.buf[0]=7\nb=s.SharedMemory(a.name); print(b.buf[0]); b.close(); a.close(); a.unlink()"'),
    ('asyncio', 'python3 -c "\nimport asyncio\nasync def main():\n  async def w(n): await asyncio.sleep(n/50); return n\n  print(await asyncio.gather(*[w(i) for i in range(5)]))\n  p=await asyncio.create_subprocess_exec(\'sh\',\'-c\',\'echo hi; exit 4\',stdout=asyncio.subprocess.PIPE)\n  print((await p.communicate())[0], p.returncode)\n  try: await asyncio.wait_for(asyncio.sleep(5),0.1)\n  except asyncio.TimeoutError: print(\'timeout\')\n  s=await asyncio.start_unix_server(lambda r,w:(w.write(b\'srv\'),w.close()),\'sock\')\n  r,w=await asyncio.open_unix_connection(\'sock\'); print(await r.read()); s.close()\n  print(await asyncio.to_thread(sum,[1,2,3]))\nasyncio.run(main())"'),
    ('asyncio-tcp', 'python3 -c "\nimport asyncio\nasync def h(r,w):\n  while (d:=await r.read(100)): w.write(d); await w.drain()\n  w.close()\nasync def main():\n  s=await asyncio.start_server(h,\'127.0.0.1\',7802)\n  async def c():\n    r,w=await asyncio.open_connection(\'127.0.0.1\',7802)\n    for _ in range(50): w.write(b\'x\'*64); await r.readexactly(64)\n    w.close()\n  await asyncio.gather(*[c() for _ in range(10)]); print(\'done\')\nasyncio.run(main())"', {'needs_lo': True}),
    ('sqlite', 'python3 -c "\nimport sqlite3\nc=sqlite3.connect(\'t.db\'); c.execute(\'create table t(a integer primary key,b text)\')\nc.executemany(\'insert into t values(?,?)\',[(i,str(i)) for i in range(2000)]); c.commit()\nprint(c.execute(\'select count(*),sum(a) from t\').fetchone()); c.close()\nc=sqlite3.connect(\'t.db\'); print(c.execute(\'pragma journal_mode=wal\').fetchone()); c.execute(\'delete from t where a%2\'); c.commit(); print(c.execute(\'pragma integrity_check\').fetchone(), c.execute(\'select count(*) from t\').fetchone())"'),
    ('sqlite-writers', 'cat >w.py <<E\nimport sqlite3,sys\nc=sqlite3.connect("w.db",timeout=60,isolation_level=None)\nfor i in range(100): c.execute("insert into t values(?)",(i,))\nE\nsqlite3 w.db "pragma journal_mode=wal; create table t(a)"; for i in 1 2 3 4; do python3 w.py & done; wait; sqlite3 w.db "select count(*) from t; pragma integrity_check"', {'needs': ['sqlite3'], 'timeout': 120}),
    ('mmap', 'python3 -c "\nimport mmap,os\nf=open(\'m\',\'w+b\'); f.truncate(8192); m=mmap.mmap(f.fileno(),8192); m[0:5]=b\'hello\'; m.flush(); print(open(\'m\',\'rb\').read(5))\nif os.fork()==0: m[5]=33; os._exit(0)\nos.wait(); print(m[5], m.find(b\'lo\')); m.resize(16384); print(len(m))\na=mmap.mmap(-1,4096); a[0]=1\nif os.fork()==0: a[0]=9; os._exit(0)\nos.wait(); print(a[0])"'),
    ('signals', 'python3 -c "\nimport signal,os,time\nsignal.signal(signal.SIGUSR1,lambda s,f:print(\'usr1\',s)); os.kill(os.getpid(),signal.SIGUSR1)\ndef alarm(s,f): raise TimeoutError\nsignal.signal(signal.SIGALRM,alarm); signal.setitimer(signal.ITIMER_REAL,0.1)\ntry: time.sleep(5)\nexcept TimeoutError: print(\'alarm\')\nsignal.pthread_sigmask(signal.SIG_BLOCK,[signal.SIGUSR2]); os.kill(os.getpid(),signal.SIGUSR2); print(signal.sigpending()); print(signal.sigwait([signal.SIGUSR2]))\nprint(signal.sigtimedwait([signal.SIGUSR2],0.05))"'),
    ('keyboard-interrupt', 'python3 -c "\nimport os,signal,time\ntry:\n  os.kill(os.getpid(),signal.SIGINT); time.sleep(1)\nexcept KeyboardInterrupt: print(\'interrupted\')"; timeout --foreground -s INT 2 python3 -c "import time; time.sleep(9)" 2>&1 | tail -1; echo $?'),
    ('os-calls', 'python3 -c "\nimport os,stat\nfd=os.open(\'f\',os.O_CREAT|os.O_RDWR,0o640); print(os.pwrite(fd,b\'abc\',5), os.pread(fd,8,0), os.fstat(fd).st_size); os.posix_fallocate(fd,0,100); print(os.fstat(fd).st_size)\nprint(os.lseek(fd,0,os.SEEK_DATA), oct(os.stat(\'f\').st_mode)); os.link(\'f\',\'g\'); os.symlink(\'g\',\'l\'); print(os.readlink(\'l\'), os.path.samefile(\'f\',\'l\'), os.listdir(\'.\').sort())\nos.mkdir(\'d\'); print([ (e.name,e.is_dir()) for e in sorted(os.scandir(\'.\'),key=lambda e:e.name)]); os.replace(\'g\',\'d/h\'); os.utime(\'f\',(1,2)); print(os.stat(\'f\').st_mtime); print(os.access(\'f\',os.W_OK), os.umask(0)); print(os.cpu_count()>0, os.getloadavg()[0]>=0, len(os.urandom(10)), os.sysconf(\'SC_PAGESIZE\'))\nr,w=os.pipe(); os.set_blocking(r,False)\ntry: os.read(r,1)\nexcept BlockingIOError: print(\'again\')\nprint(os.sendfile(w,fd,5,3), os.read(r,10)); print(os.memfd_create(\'x\')>0, os.eventfd(3)>0); print(os.waitstatus_to_exitcode(os.system(\'exit 9\')))"'),
    ('select-epoll', 'python3 -c "\nimport select,os,socket\na,b=socket.socketpair(); p=select.epoll(); p.register(a,select.EPOLLIN); print(p.poll(0.05)); b.send(b\'x\'); print(len(p.poll(1))); print(select.select([a],[a],[],0)[0]==[a]); q=select.poll(); q.register(a); print(q.poll(0)[0][1])"'),
    ('sockets', 'python3 -c "\nimport socket,os,array\ns=socket.socket(socket.AF_UNIX); s.bind(\'s\'); s.listen()\nif os.fork()==0:\n  c=socket.socket(socket.AF_UNIX); c.connect(\'s\'); f=open(\'x\',\'w+\'); f.write(\'passed\'); f.flush(); socket.send_fds(c,[b\'m\'],[f.fileno()]); os._exit(0)\nc,_=s.accept(); m,fds,_,_=socket.recv_fds(c,10,4); os.lseek(fds[0],0,0); print(m,os.read(fds[0],10)); os.wait()\nd=socket.socket(socket.AF_UNIX,socket.SOCK_DGRAM); d.bind(\'\\0abs\'); d.sendto(b\'dg\',\'\\0abs\'); print(d.recvfrom(10))"'),
    ('pty', 'python3 -c "\nimport pty,os\npid,fd=pty.fork()\nif pid==0: os.execvp(\'sh\',[\'sh\',\'-c\',\'tty >/dev/null && echo istty; read x; echo got \\$x; stty size\'])\nimport termios,struct,fcntl; fcntl.ioctl(fd,termios.TIOCSWINSZ,struct.pack(\'HHHH\',33,99,0,0)); os.write(fd,b\'line\\n\')\nout=b\'\'\ntry:\n  while True: out+=os.read(fd,1000)\nexcept OSError: pass\nprint(out, os.waitpid(pid,0)[1])"'),
    ('ctypes', 'python3 -c "\nimport ctypes\nl=ctypes.CDLL(None,use_errno=True); print(l.getpid()>0, l.syscall(999), ctypes.get_errno()); print(ctypes.CDLL(\'libm.so.6\').abs(-5))"'),
    ('null-pointer', 'python3 -c "import ctypes; ctypes.string_at(0)"; echo $?'),
    ('deep-recursion', 'python3 -c "\nimport sys,threading\nsys.setrecursionlimit(20000); threading.stack_size(256<<20)\ndef f(n): return 0 if n==0 else 1+f(n-1)\nt=threading.Thread(target=lambda: print(f(15000))); t.start(); t.join()"'),
    ('memory', 'python3 -c "\nx=bytearray(200<<20); x[::4096]=b\'1\'*len(x[::4096]); print(sum(x[::1<<20])); del x; y=[bytes(100) for _ in range(200000)]; print(len(y))"'),
    ('venv', 'python3 -m venv --without-pip v && v/bin/python -c "import sys; print(sys.prefix != sys.base_prefix)"'),
    ('compileall', 'cp -r /usr/lib/python3*/json . && python3 -m compileall -q json && ls json/__pycache__ | wc -l'),
    ('http-server', 'echo content >index.html; python3 -m http.server 7801 --bind 127.0.0.1 >log 2>&1 & sleep 1; python3 -c "import urllib.request as u; print(u.urlopen(\'http://127.0.0.1:7801/\').read())"; kill %1; wait %1; echo $?', {'needs_lo': True}),
    ('zip-and-hash', 'python3 -c "\nimport zipfile,hashlib,zlib,lzma\nz=zipfile.ZipFile(\'z.zip\',\'w\',zipfile.ZIP_DEFLATED); z.writestr(\'a\',\'x\'*10000); z.close(); print(zipfile.ZipFile(\'z.zip\').read(\'a\')==b\'x\'*10000, hashlib.sha256(b\'a\').hexdigest()[:8], len(lzma.compress(b\'a\'*100000))<200)"'),
    ('resource-limits', 'python3 -c "\nimport resource as r\nprint(r.getrlimit(r.RLIMIT_NOFILE)); r.setrlimit(r.RLIMIT_NOFILE,(20,20))\ntry:\n  l=[open(\'/dev/null\') for _ in range(30)]\nexcept OSError as e: print(e)\nprint(r.getrusage(r.RUSAGE_SELF).ru_maxrss>1000)"'),
    ('tempfile', 'python3 -c "\nimport tempfile,os\nwith tempfile.TemporaryDirectory() as d: open(d+\'/x\',\'w\').write(\'y\'); print(os.listdir(d))\nprint(os.path.exists(d)); f=tempfile.TemporaryFile(); f.write(b\'z\'); f.seek(0); print(f.read())"'),
    ('inotify', 'python3 -c "\nimport ctypes,os,struct\nl=ctypes.CDLL(None); fd=l.inotify_init(); l.inotify_add_watch(fd,b\'.\',0x100|0x200)\nopen(\'n\',\'w\').close(); os.unlink(\'n\'); b=os.read(fd,1000); print([struct.unpack_from(\'iIII\',b,o)[1] for o in (0,32)])"'),
]

BUILD = [
    ('gcc-hello', 'cat >h.c <<E\n#include <stdio.h>\nint main(void){printf("hello %d\\n",6*7);return 3;}\nE\ngcc -O2 -Wall h.c -o h && ./h; echo $?; gcc -static h.c -o hs && ./hs; gcc -g h.c -o hg && ./hg', {'needs': ['gcc']}),
    ('gcc-errors', 'echo "int main(){return x;}" >e.c; gcc e.c 2>err; echo $?; head -3 err; gcc missing.c; echo $?', {'needs': ['gcc']}),
    ('gcc-threads', 'cat >t.c <<E\n#include <pthread.h>\n#include <stdio.h>\nstatic int n; static pthread_mutex_t m=PTHREAD_MUTEX_INITIALIZER;\nstatic void *f(void *a){for(int i=0;i<10000;i++){pthread_mutex_lock(&m);n++;pthread_mutex_unlock(&m);}return a;}\nint main(void){pthread_t t[8];for(int i=0;i<8;i++)pthread_create(&t[i],0,f,0);for(int i=0;i<8;i++)pthread_join(t[i],0);printf("%d\\n",n);}\nE\ngcc -pthread t.c -o t && ./t', {'needs': ['gcc']}),
    ('shared-library', 'echo "int f(void){return 42;}" >l.c; gcc -shared -fPIC l.c -o libl.so; printf "#include <dlfcn.h>\\n#include <stdio.h>\\nint f(void);int main(void){void*h=dlopen(\\"libm.so.6\\",RTLD_NOW);printf(\\"%%d %%d\\\\n\\",f(),h!=0);}" >m.c; gcc m.c -L. -ll -o m; LD_LIBRARY_PATH=. ./m; ./m; echo $?', {'needs': ['gcc']}),
    ('make', 'for i in $(seq 12); do echo "int f$i(int x){return x+$i;}" >f$i.c; done; { for i in $(seq 12); do echo "int f$i(int);"; done; echo "int main(void){int s=0;"; for i in $(seq 12); do echo "s+=f$i(1);"; done; echo "return s!=90;}"; } >main.c; printf "a: \\$(patsubst %%.c,%%.o,\\$(wildcard *.c))\\n\\tgcc -o \\$@ \\$^\\n" >Makefile; make -s -j2 && ./a; echo $?; make; touch f1.c; make -s; make clean; echo $?', {'needs': ['gcc', 'make'], 'timeout': 120}),
    ('divide-by-zero', 'echo "int main(int c,char**v){return c/(c-1);}" >d.c; gcc d.c -o d; ./d; echo $?', {'needs': ['gcc']}),
    ('divide-by-zero-last', 'echo "int main(int c,char**v){return c/(c-1);}" >d.c; gcc d.c -o d; exec ./d', {'needs': ['gcc']}),
    ('null-handler', 'cat >s.c <<E\n#include <signal.h>\n#include <stdio.h>\n#include <unistd.h>\nstatic void h(int s,siginfo_t*i,void*u){printf("%d %d %p\\n",s,i->si_code,i->si_addr);fflush(stdout);_exit(5);}\nint main(int c,char**v){struct sigaction a={.sa_sigaction=h,.sa_flags=SA_SIGINFO};if(c>1)sigaction(SIGSEGV,&a,0);*(volatile int*)16=1;}\nE\ngcc s.c -o s; ./s x; echo $?; ./s; echo $?', {'needs': ['gcc']}),
    ('gdb', 'for i in 1 2 3; do gdb -q --batch -ex run --args /bin/true 2>&1 | grep -o "exited normally"; done', {'needs': ['gdb'], 'xfail': True}),
    ('strace', 'strace -f -o out sh -c "ls >/dev/null; ls >/dev/null"; echo $?; grep -c execve out', {'needs': ['strace'], 'xfail': True}),
    ('ld-so', '/lib64/ld-linux-x86-64.so.2 /bin/echo via loader; LD_PRELOAD=/nonexistent.so /bin/true; echo $?'),
    ('go', 'cat >m.go <<E\npackage main\nimport ("fmt";"os/exec";"sync")\nfunc main(){var w sync.WaitGroup;c:=make(chan int,10);for i:=0;i<100;i++{w.Add(1);go func(i int){defer w.Done();c<-i}(i)};go func(){w.Wait();close(c)}();s:=0;for v:=range c{s+=v};fmt.Println(s);o,e:=exec.Command("echo","from exec").Output();fmt.Print(string(o),e,"\\n")}\nE\nGOCACHE=$PWD/c GOFLAGS=-mod=mod HOME=$PWD go run m.go', {'needs': ['go'], 'timeout': 400}),
]

GIT = [
    ('init-commit', 'git init -q r && cd r && echo a >f && git add f && git commit -qm one && git status --short && echo b >>f && git diff && git commit -qam two && git log --oneline | wc -l && git show --stat HEAD | tail -1'),
    ('branches', 'git init -q -b main r && cd r && echo a >f && git add . && git commit -qm a && git checkout -qb x && echo x >x && git add . && git commit -qm x && git checkout -q main && echo m >m && git add . && git commit -qm m && git merge -q --no-edit x && ls && git log --oneline --graph | wc -l && git rebase -q main x; git branch | sort'),
    ('clone-gc', 'git init -q r && cd r && for i in $(seq 200); do echo $i >f$i; done && git add -A && git commit -qm all && git clone -q . ../c && cd ../c && ls | wc -l && git gc -q && git fsck && git count-objects -v | grep -E "^(count|in-pack|packs)" && echo z >>f1 && git commit -qam z && git push -q origin HEAD:refs/heads/new && git ls-remote origin | wc -l'),
    ('worktree-stash', 'git init -q -b main r && cd r && echo a >f && git add . && git commit -qm a && git worktree add -q ../w -b w && ls ../w && echo b >f && git stash -q && cat f && git stash pop -q && cat f && git tag t && git describe --tags'),
    ('conflict', 'git init -q -b main r && cd r && echo a >f && git add . && git commit -qm a && git checkout -qb x && echo x >f && git commit -qam x && git checkout -q main && echo y >f && git commit -qam y; git merge x; echo $?; cat f'),
    ('archive-blame', 'export GIT_AUTHOR_DATE=@1700000000 GIT_COMMITTER_DATE=@1700000000; git init -q r && cd r && seq 5 >f && git add . && git commit -qm a && git archive HEAD | tar t && git grep -n 3 && git blame -s f | wc -l && git bundle create -q b.bundle HEAD && git clone -q b.bundle ../d 2>/dev/null; ls ../d'),
]

NODE = [
    ('hello', 'node -e "console.log(1+1, process.version.slice(0,2), process.platform)"'),
    ('files', 'node -e "const fs=require(\'fs\');fs.writeFileSync(\'a\',\'x\'.repeat(1000));console.log(fs.readFileSync(\'a\').length,fs.readdirSync(\'.\'),fs.statSync(\'a\').size);fs.mkdirSync(\'d/e\',{recursive:true});fs.rmSync(\'d\',{recursive:true});(async()=>{await Promise.all([...Array(100)].map((_,i)=>fs.promises.writeFile(\'f\'+i,\'y\')));console.log((await fs.promises.readdir(\'.\')).length)})()"'),
    ('child-process', 'node -e "const c=require(\'child_process\');console.log(c.execSync(\'echo hi\').toString(),c.spawnSync(\'sh\',[\'-c\',\'exit 6\']).status);const p=c.spawn(\'cat\');p.stdout.on(\'data\',d=>console.log(\'got\',d.toString()));p.on(\'close\',(x)=>{console.log(\'closed\',x);c.exec(\'kill -9 \\$\\$\',(e)=>console.log(e.signal))});p.stdin.end(\'data\')"'),
    ('workers', 'node -e "const {Worker}=require(\'worker_threads\');let n=0;for(let i=0;i<4;i++){const w=new Worker(\'const {parentPort}=require(\\"worker_threads\\");let s=0;for(let i=0;i<1e6;i++)s+=i;parentPort.postMessage(s)\',{eval:true});w.on(\'message\',m=>{n+=m;});w.on(\'exit\',()=>{if(++x===4)console.log(n)});}let x=0"'),
    ('timers', 'node -e "let n=0;const t=setInterval(()=>{if(++n===3){clearInterval(t);console.log(\'three\')}},20);setTimeout(()=>console.log(\'late\'),200);setImmediate(()=>console.log(\'now\'));process.on(\'exit\',c=>console.log(\'exit\',c));process.on(\'SIGUSR2\',()=>console.log(\'sig\'));process.kill(process.pid,\'SIGUSR2\')"'),
    ('unix-server', 'node -e "const net=require(\'net\');const s=net.createServer(c=>{c.end(\'bye\')}).listen(\'s\',()=>{net.connect(\'s\').on(\'data\',d=>console.log(d.toString())).on(\'end\',()=>s.close())})"'),
    ('http', 'node -e "const h=require(\'http\');const s=h.createServer((q,r)=>r.end(\'ok \'+q.url)).listen(7803,\'127.0.0.1\',()=>h.get(\'http://127.0.0.1:7803/x\',r=>{r.on(\'data\',d=>console.log(d.toString()));r.on(\'end\',()=>s.close())}))"', {'needs_lo': True}),
    ('watch', 'node -e "const fs=require(\'fs\');fs.writeFileSync(\'w\',\'\');const w=fs.watch(\'w\',(e)=>{console.log(e);w.close();process.exit(0)});setTimeout(()=>fs.writeFileSync(\'w\',\'x\'),50)"'),
    ('crash', 'node -e "throw new Error(\'x\')" 2>&1 | grep -c Error; node -e "process.abort()" >/dev/null 2>&1; echo $?'),
    ('stdin', 'echo input | node -e "process.stdin.on(\'data\',d=>console.log(\'in\',d.toString().trim()))"; node -e "process.stdout.write(\'x\'.repeat(200000))" | wc -c'),
]

OTHER = [
    ('strace', 'strace -f -o log sh -c "echo a | cat; true"; grep -c "execve(" log; grep -o "exited with [0-9]*" log | sort | uniq -c; strace -c -o /dev/null true; echo $?', {'needs': ['strace']}),
    # gdb can't read the vDSO here, and says so.
    ('gdb', 'cat >p.c <<"E"\n#include <stdio.h>\nint g;\nint f(int x) { g = x; return x + 1; }\nint main(void) { int s = 0; for (int i = 0; i < 3; i++) s += f(i); printf("%d\\n", s); return 0; }\nE\n'
     'gcc -g -O0 p.c -o p; gdb -q -batch -ex "break f" -ex run -ex bt -ex step -ex "print x" -ex "set can-use-hw-watchpoints 0" -ex "watch g" -ex continue -ex delete -ex continue ./p 2>&1 | grep -v "^warning\\|debuginfod\\|libthread\\|valid object file"',
     {'needs': ['gdb', 'gcc'], 'sub': [(r'process \d+', 'process PID')]}),
    # Some virtual machines lose the debug registers.
    ('gdb-hardware-watch', 'cat >p.c <<"E"\nint g;\nint main(void) { for (int i = 0; i < 3; i++) g += i; return g; }\nE\n'
     'gcc -g -O0 p.c -o p; gdb -q -batch -ex "break main" -ex run -ex "watch g" -ex continue -ex continue ./p 2>&1 | grep -A3 "^Hardware"',
     {'needs': ['gdb', 'gcc'], 'native': r'Hardware watchpoint 2: g\n(.*\n)*.*Old value'}),
    ('gdb-attach', 'sleep 5 & gdb -q -batch -p $! -ex "info threads" -ex detach 2>&1 | grep -c "Inferior 1.*detached"; kill %1', {'needs': ['gdb']}),
    ('sqlite3', 'sqlite3 t.db "create table t(a,b); insert into t values(1,\'x\'),(2,\'y\'); select sum(a),group_concat(b) from t; .tables"; { echo "begin;"; for i in $(seq 1000); do echo "insert into t values($i,0);"; done; echo "commit; select count(*) from t;"; } | sqlite3 t.db', {'needs': ['sqlite3']}),
    ('openssl', 'echo secret | openssl enc -aes-256-cbc -pbkdf2 -k p -S 0102030405060708 | openssl enc -d -aes-256-cbc -pbkdf2 -k p -S 0102030405060708; openssl rand 16 | wc -c; openssl genrsa 1024 2>/dev/null | head -1', {'needs': ['openssl']}),
    ('compress', 'seq 50000 >f; for c in gzip bzip2 xz; do $c -k f; done; ls f* | sort; zcat f.gz | cmp - f; bzcat f.bz2 | cmp - f; xzcat f.xz | cmp - f; echo $?', {'needs': ['bzip2', 'xz']}),
    ('ripgrep', 'mkdir d; for i in $(seq 100); do echo "line $i needle" >d/$i; done; rg -c needle d | wc -l; rg -N "e 42" d', {'needs': ['rg']}),
    ('busybox', 'busybox sh -c "busybox seq 3 | busybox sort -r; busybox echo x | busybox sed s/x/y/; busybox ls / | busybox grep -c ."; busybox false; echo $?', {'needs': ['busybox']}),
    ('ps-aux', 'sleep 3 & ps aux | awk "{print \\$1, \\$11}" | sort -u; ps -ef | wc -l; ps -o pid,ppid,pgid,sid,tty,stat,comm | awk "{print \\$7}" | sort -u'),
    ('top', 'top -b -n1 | head -1 | cut -c1-3; top -b -n1 | grep -c "top$"', {'needs': ['top']}),
    ('apt-offline', 'apt-get update >out 2>&1; echo $?; grep -c "^[WE]:" out | grep -qv "^0$"; echo $?; apt-get install -y nonexistent-package-x >/dev/null 2>&1; echo $?; dpkg -l bash | tail -1 | cut -c1-8; apt-cache policy bash | head -1', {'needs': ['apt-get'], 'timeout': 120}),
    ('dpkg', 'mkdir -p p/DEBIAN p/usr/share/x; printf "Package: xx\\nVersion: 1\\nArchitecture: all\\nMaintainer: a <a@b.c>\\nDescription: d\\n" >p/DEBIAN/control; echo y >p/usr/share/x/y; dpkg-deb -b p x.deb; dpkg-deb -c x.deb | wc -l; mkdir o; dpkg-deb -x x.deb o; cat o/usr/share/x/y', {'needs': ['dpkg-deb']}),
    ('curl-offline', 'curl -s http://127.0.0.1:1/; echo $?; curl -s file:///etc/hostname >/dev/null; echo $?; curl -s http://name.invalid/; echo $?', {'needs': ['curl'], 'needs_lo': True}),
    ('script', 'script -qec "tty >/dev/null && stty size && echo tty" /dev/null </dev/null | tr -d "\\r"', {'needs': ['script']}),
    ('locale-tz', 'locale 2>/dev/null | head -1; TZ=UTC date -d @0 +%c; getent passwd root; getent hosts localhost >/dev/null; echo $?'),
    ('unshare-refused', 'unshare -m true; echo $?; mount -t tmpfs none /mnt; echo $?; hostname x; echo $?; chroot / true; echo $?', {'sub': [(r'\.\s*$', '.')]}),
    ('redis', 'redis-server --port 7777 --save "" --daemonize no >log 2>&1 & for i in $(seq 50); do redis-cli -p 7777 ping 2>/dev/null | grep -q PONG && break; sleep 0.1; done; redis-cli -p 7777 set a 5; redis-cli -p 7777 incr a; redis-cli -p 7777 shutdown; wait; echo $?', {'needs': ['redis-server'], 'needs_lo': True}),
    ('java', 'printf "public class A{public static void main(String[] a)throws Exception{Thread t=new Thread(()->System.out.println(\\"thread\\"));t.start();t.join();System.out.println(Runtime.getRuntime().availableProcessors()>0);}}" >A.java; javac A.java && java A', {'needs': ['javac'], 'timeout': 120}),
    ('lua', 'lua5.4 -e "print(2^10)" || lua -e "print(2^10)"', {'needs': ['lua']}),
]

# What tools probe for and agents do: each was seen to break in some sandbox.
SYSCALL = 'import ctypes,os,errno,struct;L=ctypes.CDLL(None,use_errno=True)\n' \
    'def s(*a):\n    r=L.syscall(*[ctypes.c_long(x) if isinstance(x,int) else x for x in a])\n' \
    '    return r if r>=0 else errno.errorcode[ctypes.get_errno()]\n'


def py(code):
    return "python3 - <<'E'\n" + SYSCALL + code + '\nE'


AGENTS = [
    ('openat2', py('root=os.open("/",os.O_PATH)\nhow=lambda r,n=24:struct.pack("QQQ",os.O_PATH,0,r)+bytes(n-24)\n'
                   'for r in (0,1,2,4,8,0x10,0x12,0x1a,0x20,0x40): print(r, isinstance(s(437,root,b"/etc",how(r),24),int), isinstance(s(437,root,b"etc",how(r),24),int))\n'
                   'd=os.open("/etc",os.O_PATH)\nprint(s(437,d,b"../etc",how(8),24), isinstance(s(437,d,b"../../passwd",how(0x10),24),int))\n'
                   'print(s(437,root,b"etc",how(0,32),32)>0, s(437,root,b"etc",how(0,24)+b"\\1"+bytes(7),32), s(437,root,b"etc",how(0),16))')),
    ('absent-calls', py('for n in (999,174,180,183,512,1023): print(n, s(n,4,0,0,0,0,0))\n'
                          'for n in (425,426,427): print("ring", s(n,4,0,0,0,0,0))'),
     {'sub': [(r'^ring (ENOSYS|EPERM|EFAULT|EBADF|EINVAL)$', 'ring refused')]}),
    ('new-calls', py('print(s(439,-100,b"/proc/version",2,0), s(439,-100,b"/tmp",2,0x200), s(439,-100,b"/tmp",2,0x100000))\nb=ctypes.create_string_buffer(256)\n'
                     'print(s(332,-100,b"/etc",0,0x7ff,b), s(332,-100,b"/etc",0x10000,0x7ff,b), s(435,b,8), s(435,None,88))')
     + '\n[ -w /tmp ] && [ ! -w /proc/version ]; echo $?'),
    ('libuv-without-ring', 'echo data >f; for i in 1 2 3; do UV_USE_IO_URING=1 node -e "const fs=require(\'fs\').promises;(async()=>{let n=0;for(let i=0;i<300;i++)n+=(await fs.readFile(\'f\')).length;console.log(n)})()"; done', {'needs': ['node']}),
    ('preallocate', 'fallocate -n -l 1M f; stat -c "%s" f; [ $(stat -c %b f) -ge 2048 ]; echo $?; echo x >g; fallocate -l 64k g; B=$(stat -c %b g); fallocate -p -o 4096 -l 8192 g; echo $((B-$(stat -c %b g)))\n'
     'python3 -c "import os;f=os.open(\'h\',66,0o600);print(os.pwritev(f,[b\'ab\'],0,os.RWF_DSYNC),os.pwritev(f,[b\'cd\'],2,os.RWF_SYNC))"'),
    ('ambient-capabilities', 'P="setpriv --inh-caps +net_bind_service --ambient-caps +net_bind_service --bounding-set +all"; $P grep ^Cap /proc/self/status; $P --no-new-privs grep -e ^Cap -e NoNew /proc/self/status; '
     '$P --reuid 1000 --regid 1000 --clear-groups grep ^Cap /proc/self/status; $P --securebits +noroot grep ^Cap /proc/self/status', {'needs': ['setpriv']}),
    ('kernel-files', 'grep -c ^Sig /proc/self/status; for f in smaps_rollup ns/time oom_score_adj limits io wchan personality syscall timerslack_ns; do head -c1 /proc/self/$f >/dev/null && readlink -q /proc/self/$f | cut -c1-4; done; '
     'test -r /proc/self/pagemap; echo $?; for f in kernel/core_pattern fs/inotify/max_user_watches kernel/perf_event_paranoid kernel/pid_max vm/overcommit_memory kernel/random/boot_id fs/file-max kernel/threads-max '
     'vm/max_map_count net/core/somaxconn kernel/ngroups_max kernel/cap_last_cap; do wc -l </proc/sys/$f; done'),
    ('signals-of-sh', 'trap "" PIPE; bash -c "yes | head -1; echo \\${PIPESTATUS[0]}" 2>/dev/null; python3 -c "import signal;print(signal.getsignal(signal.SIGPIPE))"; grep ^SigIgn /proc/self/status'),
    ('null-is-null', 'for i in $(seq 30); do bash -c "set -o pipefail; seq 1 5 | grep 5 >/dev/null" || echo bad; done; stat -c "%t:%T %F" /dev/null; [ $(stat -c %d:%i /dev/null) = $(stat -Lc %d:%i /dev/fd/1) ] >/dev/null; echo $?'),
    ('gdb-20', 'for i in $(seq 20); do gdb -q -batch -ex run --args /bin/true 2>&1 | grep -o "exited normally"; done | sort | uniq -c', {'needs': ['gdb'], 'timeout': 120}),
    ('gdb-threads', 'cat >p.c <<"E"\n#include <pthread.h>\nvolatile int n;\nstatic pthread_barrier_t b;\nstatic void f(void) { n++; }\nstatic void *run(void *p) { pthread_barrier_wait(&b); f(); pthread_barrier_wait(&b); return p; }\n'
     'int main(void) { pthread_t t[3]; pthread_barrier_init(&b, 0, 4); for (int i = 0; i < 3; i++) pthread_create(t + i, 0, run, 0); pthread_barrier_wait(&b); pthread_barrier_wait(&b); return 0; }\nE\n'
     'gcc -g -O0 -pthread p.c -o p; gdb -q -batch -ex "break f" -ex run -ex "info threads" -ex "delete" -ex continue ./p 2>&1 | grep -c -e "^[* ] *[0-9].*Thread 0x" -e "exited normally"', {'needs': ['gdb', 'gcc']}),
    ('strace-of-pipes', 'for i in 1 2 3 4 5; do strace -ff -o out sh -c "ls >/dev/null; ls | cat >/dev/null" ; echo $? $(cat out.* | grep -c "execve(.*= 0"); rm out.*; done', {'needs': ['strace']}),
    ('bwrap-root', 'bwrap --unshare-all --ro-bind / / --proc /proc --dev /dev sh -c "echo in; id -u; ls /dev | sort | head -3; cat /proc/1/comm"; echo $?; '
     'bwrap --unshare-all --ro-bind / / --proc /proc --dev /dev --tmpfs /tmp bwrap --unshare-all --ro-bind / / --dev /dev sh -c "echo nested; touch /x 2>/dev/null; echo \\$?"; echo $?',
     {'needs': ['bwrap'], 'caps': ['CAP_SYS_ADMIN', 'CAP_NET_ADMIN', 'CAP_SYS_PTRACE', 'CAP_SETFCAP']}),
    ('bwrap-nobody', 'B="bwrap --unshare-all --ro-bind / / --dev /dev --tmpfs /tmp"; setpriv --reuid 65534 --regid 65534 --clear-groups sh -c "$B sh -c \\"echo in; id -u\\"; echo \\$?; $B $B $B sh -c \\"echo three deep\\"; echo \\$?"',
     {'needs': ['bwrap', 'setpriv']}),
    ('bwrap-gdb-strace', 'bwrap --unshare-user --unshare-pid --ro-bind / / --proc /proc --dev /dev --tmpfs /tmp sh -c "strace -f -o /tmp/o true; echo \\$?; gdb -q -batch -ex run --args /bin/true 2>&1 | grep -o \'exited normally\'"',
     {'needs': ['bwrap', 'gdb', 'strace'], 'caps': ['CAP_SYS_ADMIN', 'CAP_SYS_PTRACE', 'CAP_NET_ADMIN', 'CAP_SETFCAP']}),
    ('set-user-id', 'mkdir s; mount -t tmpfs none s 2>/dev/null; cp /usr/bin/id /tmp/id; chmod 4755 /tmp/id; setpriv --reuid 65534 --regid 65534 --clear-groups /tmp/id -u; setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs /tmp/id -u; '
     'chmod 4777 /tmp/id; setpriv --reuid 65534 --regid 65534 --clear-groups sh -c "echo >>/tmp/id"; stat -c %a /tmp/id', {'needs': ['setpriv']}),
    ('many-left-behind', 'for i in $(seq 200); do (sleep 60 &) ; done; exit 3'),
    ('mapped-beyond-end', 'cat >p.c <<"E"\n#include <signal.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <sys/mman.h>\n#include <unistd.h>\n#include <fcntl.h>\n#include <setjmp.h>\nstatic sigjmp_buf j; static siginfo_t i;\n'
     'static void h(int s, siginfo_t *p, void *c) { (void)s; (void)c; i = *p; siglongjmp(j, 1); }\n#define T(a) do { if (!sigsetjmp(j, 1)) { *(volatile char *)(a); puts("read"); } else printf("%d %d %d\\n", i.si_signo, i.si_code, i.si_addr == (void *)(a)); } while (0)\n'
     'int main(void) { struct sigaction s = {.sa_sigaction = h, .sa_flags = SA_SIGINFO}; sigaction(SIGSEGV, &s, 0); sigaction(SIGBUS, &s, 0);\n'
     'char *m = mmap(0, 8192, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); m[5] = 1; mprotect(m, 4096, 0); T(m + 5); munmap(m, 4096); T(m + 5);\n'
     'int f = open("f", O_RDWR | O_CREAT, 0600); ftruncate(f, 8192); m = mmap(0, 8192, 3, MAP_SHARED, f, 0); m[4097] = 1; ftruncate(f, 100); T(m + 4097); T(m + 101); return 0; }\nE\n'
     'gcc -w -o p p.c && ./p', {'needs': ['gcc']}),
]

START = [
    ('missing-program', None, {'argv': ['nosuchcmd']}),
    ('missing-path', None, {'argv': ['/bin/does-not-exist']}),
    ('not-executable', None, {'argv': ['/etc/passwd']}),
    ('directory', None, {'argv': ['/etc']}),
    ('true', None, {'argv': ['true']}),
    ('false', None, {'argv': ['false']}),
    ('argv0', None, {'argv': ['sh', '-c', 'echo $0 $@', 'zero', 'one two', '']}),
    ('segv-as-init', None, {'argv': ['python3', '-c', 'import ctypes; ctypes.string_at(0)']}),
    ('init-kills-itself', None, {'argv': ['sh', '-c', 'kill -9 $$; echo survived; exit 4']}),
    ('init-exits-with-children', None, {'argv': ['sh', '-c', 'for i in 1 2 3; do sleep 60 & done; exit 3']}),
    ('daemon-left-behind', None, {'argv': ['sh', '-c', '(sleep 60 >/dev/null 2>&1 &); echo out; exit 0']}),
    ('zombies-of-init', None, {'argv': ['sh', '-c', 'for i in 1 2 3; do (sleep 0.1 &); done; sleep 0.5; ps -e -o stat= | grep -c Z; exit 0']}),
]

GROUPS = {'shell': SHELL, 'coreutils': COREUTILS, 'perl': PERL, 'python': PYTHON, 'build': BUILD, 'git': GIT,
          'node': NODE, 'other': OTHER, 'agents': AGENTS, 'start': START}
