import re,sys
sys.path.insert(0,'notebooks'); 
import matplotlib; matplotlib.use("Agg")
import matplotlib.pyplot as plt, numpy as np
import qdtheory as qd, data.tables as T
plt.style.use(qd.plotting.STYLE)
import csv
src=sys.argv[1]
if src=="fake":
    T_read=lambda n: list(csv.DictReader(l for l in open(f'/tmp/w/sens_fake/{n}') if l[0]!="#"))
    T_prov=lambda n:[]
else:
    T_read,T_prov=T.read,T.provenance
read,provenance=T_read,T_prov
from scipy.stats import rankdata
def spearman(x, y):
    return np.corrcoef(rankdata(np.round(x,10)),rankdata(np.round(y,10)))[0,1]
damaged=("mode collapse","word dropout","word swap")
src=open('/tmp/w/nbcells.md').read()+open('/tmp/w/nbclaims.md').read()
for c in re.findall(r"```\{code-cell\} ipython3\n(.*?)```",src,re.S):
    exec(c)
exec(open('/tmp/w/figcell.py').read())
figure.savefig('/tmp/w/fig.png',dpi=80)
