import re,sys
def funcs(path):
    src=open(path).read()
    out={}
    for m in re.finditer(r'^func (\w+)\(.*?^}\n',src,re.M|re.S):
        out[m.group(1)]=m.group(0)
    return out
def add(title,what,cite,tests,fix,path):
    F=funcs(path)
    with open('/tmp/review-B.md','a') as f:
        f.write(f"\n## {title}\n\n**Breaks:** {what}\n\n**Contract:** {cite}\n\n**Test** (fails at 73d2507; needs the header at the top of this file):\n\n```go\n")
        for t in tests: f.write(F[t]+"\n")
        f.write(f"```\n\n**Fix:** {fix}\n")
