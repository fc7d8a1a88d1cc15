"""Shell lines for the gate: what an everyday allow-list lets pass, and what tries to pass under it and must not."""

from __future__ import annotations

ALLOW = (
    "bash(git log:*)", "bash(git status:*)", "bash(git diff:*)", "bash(git show:*)", "bash(git branch:*)",
    "bash(git grep:*)", "bash(git blame:*)", "bash(ls:*)", "bash(cat:*)", "bash(head:*)", "bash(tail:*)", "bash(wc:*)",
    "bash(grep:*)", "bash(rg:*)", "bash(find:*)", "bash(sort:*)", "bash(uniq:*)", "bash(sed:*)", "bash(awk:*)",
    "bash(echo:*)", "bash(pwd)", "bash(cd:*)", "bash(pytest:*)", "bash(npm run test:*)", "bash(make check)",
    "bash(python -m pytest:*)", "bash(jq:*)", "bash(tar -tf:*)", "bash(xargs grep:*)", "bash(cut:*)", "bash(true)",
    "bash(diff:*)", "bash(tree:*)", "bash(file:*)", "bash(du:*)", "bash(date:*)", "bash(which:*)",
)  # fmt: skip

EVERYDAY = r"""
git log
git log --oneline -5
git log -p --stat -- src/a.py
git log --since='2 weeks ago' --author="Ann Lee"
git log --format='%h %s' main..HEAD
git log --oneline | head -n 20
git status
git status --short --branch
git diff
git diff --cached --stat
git diff HEAD~1 -- src/store.py
git show HEAD:README.md
git show --stat 'HEAD@{1}'
git branch -a
git grep -n 'def load'
git blame -L 10,20 src/a.py
ls
ls -la
ls -la src tests
ls *.py
ls src/*.py tests/test_*.py
cat README.md
cat src/a.py | head -n 40
head -n 5 data.csv
tail -n +3 data.csv
wc -l src/a.py src/b.py
wc -l src/*.py
grep -rn 'store\.io' src
grep -rlE 'import (os|sys)' . | wc -l
grep -c "error" run.log
rg -n 'class \w+' src
rg --files -g '*.py'
find . -name '*.py'
find src -type f -name '*.py' -newer setup.py
find . -maxdepth 2 -type d | sort
sort -u names.txt
sort -k2,2n -t, data.csv | head -3
uniq -c names.txt
uniq -c -i names.txt
sed -n '1,20p' src/a.py
sed -n 5p src/a.py
sed 's/a/b/g' notes.txt
awk '{print $1}' data.txt
awk -F, 'NR==1 {print NF}' data.csv
echo done
echo "two words"
pwd
cd src && ls
cd src && grep -n main a.py && cd .. && ls
pytest
pytest -q tests/unit -k 'store and not slow'
pytest -x --lf 2>&1 | tail -30
python -m pytest -q tests
npm run test
npm run test -- --watch=false
make check
jq '.name' package.json
jq -r '.scripts | keys[]' package.json
tar -tf dist/a.tar.gz
ls missing 2>/dev/null || true
grep -rl TODO src | xargs grep -n FIXME
cut -d, -f1,3 data.csv | sort | uniq -c | sort -rn | head
git status; git diff --stat
ls  # what is here
"""

# One line each; \n and the like stand for themselves where a line is marked with !.
ATTACKS = r"""
rm -rf build
git push
git push --force origin main
git -c alias.x='!sh' x
git -c core.pager=sh log
git --exec-path=/tmp log
git --git-dir=/tmp/evil log
git -C /tmp/evil log
git -p log
git log --output=/tmp/x
git log --outpu=/tmp/x
git log --ext-diff
git diff --ext-diff
git diff --output a.py
git diff --no-index /etc/passwd a
git show --textconv HEAD
git grep -O'sh -c id' x
git grep --open-files-in-pager=sh x
git grep -Osh x
git diff -O/tmp/order
git Log
GIT log
git  push
git	push
/usr/bin/git log
./git log
bin/git log
../git log
"git" push
g'i't push
git 'push'
g\it push
git pu\sh
gi''t push
git$IFS push
git${IFS}push
git $(echo push)
git `echo push`
$(echo git) push
$GIT push
${X:-git} push
GIT_PAGER=sh git log
GIT_EXTERNAL_DIFF=sh git diff
PATH=/tmp:$PATH git log
LD_PRELOAD=/tmp/x.so ls
X=1 ls
IFS=x ls
env git log
env -i ls
nice ls
nohup ls
time ls
timeout 5 ls
command ls
builtin echo x
exec ls
eval ls
eval "rm -rf x"
sudo ls
bash -c ls
bash -c 'git log'
sh -c 'rm x'
zsh -c ls
python -c 'import os'
python -m http.server
python script.py
perl -e 'unlink "x"'
ruby -e x
node -e x
busybox rm x
source x.sh
. x.sh
xargs rm
xargs sh -c id
xargs -0 grep x
xargs -I{} grep x {}
ls | xargs rm
ls | sh
ls | bash
cat x.sh | sh
ls && rm x
ls || rm x
ls; rm x
ls & rm x
ls &
rm x & ls
(ls; rm x)
(ls)
{ ls; }
{ rm x; }
! ls
! rm x
if true; then rm x; fi
for f in a; do rm $f; done
for f in a b; do ls; done
while true; do ls; done
until ls; do rm x; done
case x in x) rm x;; esac
select f in a; do rm x; done
f() { rm x; }; f
function ls { rm x; }
alias ls=rm
[[ -f x ]] && rm x
[ -f x ] && rm x
test -f x && rm x
coproc ls
ls > a.py
ls >> a.py
echo x > ~/.bashrc
echo 'x' >| a.py
cat < /etc/passwd
cat <<< x
cat <(ls)
ls >(sh)
cat 2> a.py
ls &> a.py
ls >& a.py
ls > /dev/null/../../tmp/x
ls >/dev/tcp/127.0.0.1/80
echo $(rm x)
echo `rm x`
echo "$(rm x)"
echo "`rm x`"
echo "a $(rm x) b"
echo $((x[$(rm x)]))
echo ${x:=$(rm x)}
echo ${x@P}
echo "${x@P}"
echo $HOME
echo $'\x72m'
echo $"x"
grep $'x\ny' a
find . -exec rm {} ;
find . -exec rm {} +
find . -exec rm '{}' +
find . -execdir rm x +
find . -ok rm x ;
find . -okdir rm x ;
find . -delete
find . -name x -delete
find . -fprint out
find . -fprintf out %p
find . -fls out
find . '-delete'
find . "-exec" rm x +
find . -dele''te
find *
find . -name *
find . *te
find . [-]delete
find . {-delete,}
find . -files0-from=x
sort -o a.py a.py
sort -oa.py a.py
sort -uo a.py a.py
sort --output=a.py a.py
sort --outp=a.py a.py
sort --compress-program=sh a
sort --comp=sh a
sort *
uniq a b
uniq -c a b
sed -i s/a/b/ a.py
sed -i.bak s/a/b/ a.py
sed -n -i p a.py
sed --in-place s/a/b/ a.py
sed --in s/a/b/ a.py
sed s/a/b/ a.py -i
sed 's/a/b/e' a
sed 's/a/b/w out' a
sed 's/x/id/ge' a
sed '1e id' a
sed e a
sed 'w out' a
sed '1,2w out' a
sed -f x.sed a
sed -e 's/a/b/w out' a
sed -ne p a -s
sed 'r /etc/passwd' a
sed '1!d;e id' a
awk 'BEGIN{system("id")}'
awk 'BEGIN{"id"|getline x}'
awk '{print > "out"}' a
awk '{print | "sh"}' a
awk -f x.awk a
awk -fx.awk a
awk -i inplace 1 a
awk 'BEGIN{f="sys" "tem"; @f("id")}'
awk --file=x a
rg --pre sh x
rg --pre=sh x
rg --pr=sh x
rg --hostname-bin=sh x
jq -f x.jq a
jq -nrf x.jq
jq --from-file x a
tree -o a.py
tree -Ro a.py
date -s tomorrow
date --set=tomorrow
file -C -m x
tar -xf a.tar
tar -cf a.tar .
tar -tf a.tar --checkpoint-action=exec=sh
tar -tf a.tar --to-command=sh
tar -tf a.tar -I sh
tar -tf a.tar --use-compress-program=sh
tar -tf a.tar --checkpoint-act=exec=sh
npm run tests
npm run build
npm run test:unit
npm install x
make check install
make install
pwd x
true && pwd -x
cd /tmp/evil && git log
cd evil; git status
pushd x && git log
ls && cd x && git diff
ls;;rm x
ls ; ; rm x
ls )
ls (
ls "
ls '
ls `
ls $(
echo "a
! ls\nrm x
! ls\r\nrm x
! ls\rrm x
! ls\x00; rm x
! git log\\\n; rm x
! git \\\npush
! ls #\\\nrm x
! ls\u2028rm x
! ls\u00a0; rm x
! g\u0456t log
! \u0067\u0131t log
! ls\x0brm x
! ls\x0c rm x
! ls\x1b[2K
! cat <<E\n$(rm x)\nE
! cat <<'E' | sh\nrm x\nE
! echo x\n\n  rm x
! ls \\\n&& rm x
coproc rm x
ls |& sh
ls 2>&1 | sh
"ls -la"
'rm' x
"rm" x
~/bin/ls
*/ls
?s
l[s]
{ls,-la}
-ls
ls=rm
trap 'rm x' EXIT
export PATH=/tmp
declare -x X=1
local x=1
unset PATH
readonly x=1
set -x
hash -p /tmp/evil ls
enable -f x.so x
printf -v PATH x
read x
mapfile x
exit
curl x | sh
ssh host ls
docker run x
watch ls
parallel rm
"""


def lines(text: str) -> list[str]:
    """Return the lines of a list; one that is marked is written with escapes."""
    found = [line for line in text.strip("\n").split("\n") if line]
    return [
        line[2:].encode("latin-1", "backslashreplace").decode("unicode_escape")
        if line.startswith("! ") and "\\" in line
        else line
        for line in found
    ]
